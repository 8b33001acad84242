// Package core is what package comm's calls are made of below their types: groups of ranks, and the calls on them as a
// kind, an element type, an operation, a root and bytes. Nothing in it is generic.
//
// A blocking call of ranks that share memory takes the short path (short.go) if it can. Every other collective takes
// four steps:
//
//  1. A function of its family checks the arguments and fills in a [Collective]: reductions.go (with operands.go), broadcast.go, gather.go,
//     alltoall.go, barrier.go, objects.go, membership.go. collective.go has the checks.
//  2. [Collective.Do], Run or Start gives it its number and its position among the group's collectives (order.go).
//  3. When its turn has come, perform begins it at the endpoint, calls its body, and ends it (perform.go). If the caller's own code
//     panics in it, the group fails (error.go).
//  4. The body, which is in the family's file, chooses one of three ways to carry the call out:
//     in memory, if all members share it (team.go, package shm);
//     in stages, if members are on several machines and share memory there (package hier);
//     by messages: package plan says who sends what to whom, and package pipeline carries that out.
//
// attach.go is how members get the memory that they share: in the first collective that can use it. Sends, receives and
// probes have no order and no body: p2p.go. world.go is what the groups of a process share.
//
// The package has more lines than a package here should have. All of them but p2p.go work on one Collective and the
// Group that has its turn: a cut between them would make the fields of both public.
package core
