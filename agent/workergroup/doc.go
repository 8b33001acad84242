// Package workergroup keeps the workers of a node over the rounds of its job, for --on-failure=replace: those that take part outlive a
// round, and only the others are started again.
//
// A [Group] has a launcher.Gang for each worker, so that one can be stopped, with all that it has started, and the others not know of it. For
// the agent, [Group.Start] is launcher.Start: it returns a [Gang] with all workers of a round in it, of whom those that live already
// have been told of the round (see package rounds). [Gang.Revoke] ends a round: it lets those live that take part.
//
// The Group's state is behind one mutex, under which nothing waits.
package workergroup
