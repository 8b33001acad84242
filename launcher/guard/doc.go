// Package guard is the process between an agent and its workers. It is their parent and the subreaper of all that they
// start, so a process that its parents left (a double fork, with or without setsid) becomes a child of the guard and is
// found in /proc. A socket joins agent and guard; the guard reads its end of file when the agent is gone.
//
// A guard is the agent's own binary, executed again: a program that starts one imports package reexec, below this one. The
// agent's side is Start and the Guard that it returns. The package imports little, for a guard is to be there soon.
package guard
