// Package workergroup keeps the workers of a node over the rounds of its job, for --on-failure=replace: workers that take part survive a
// round, and only the others are started again.
//
// A [Group] has a launcher.Gang for each worker. So it can stop one worker, with all processes that this worker has started, and the others
// do not notice. For the agent, [Group.Start] takes the place of launcher.Start. It sends the new round to the survivors (see package rounds),
// starts the other workers, and returns a [Gang] of all. [Gang.Revoke] ends the round, but not the workers that take part.
//
// A mutex guards the state of the Group. Nothing waits while it is held. Whether a worker is late is decided without a
// clock (see unanswered); one timer is set for the first deadline of all workers.
package workergroup
