// Package core is what package comm's calls are made of below their types: groups of ranks, and the calls on them as a kind, an
// element type, an operation, a root and bytes. Nothing in it is generic.
//
// A blocking call of ranks that share memory takes the short path (short.go) if it can. Any other call becomes a [Collective]
// (collective.go), which checks its arguments, gets its place in its group's order (order.go), and is performed when its turn has come
// (perform.go). Each family of calls is a file: reductions.go, moves.go, gather.go, alltoall.go, coalesced.go, objects.go. The body
// of a call there chooses one of three ways to carry it out:
//
//   - in memory, if all members are a team (team.go, package shm),
//   - in stages, if they are on several machines and share memory there (package hier),
//   - by messages: a plan says who sends what to whom (package plan), and a pipeline carries it out (package pipeline).
//
// Sends, receives and probes are p2p.go. attach.go is how members get the memory that they share.
package core
