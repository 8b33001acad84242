// Package workergroup keeps the workers of a node over the rounds of its job, for --on-failure=replace: workers that take part survive a
// round, and only the others are started again.
//
// A [Group] knows what each worker has been sent and has answered. [Group.Begin] sends the next round to the
// survivors (see package env), and says which workers are to be started. [Group.Revoke] ends the round, but not
// the workers that take part.
//
// The agent's loop owns the Group: it passes on what happens, with the time, and takes what follows from that. A
// Group has no clock, lock or goroutine. Only the sockets of its workers have goroutines, which send what they read
// to [Group.Messages].
package workergroup
