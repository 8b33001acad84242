// Package guard is the process between an agent and its workers. It is the parent of the workers and the subreaper of
// everything that they start, so an orphaned process (after a double fork, with or without setsid) becomes a child of
// the guard and is found in /proc. A socket connects agent and guard; when the agent is gone, the guard reads an end of
// file.
//
// A guard is the agent's own binary, executed again: it branches off in an init function of this package. The agent's side is Start and
// the Guard that it returns. The package imports little, so that a guard starts fast.
package guard
