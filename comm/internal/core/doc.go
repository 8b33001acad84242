// Package core is what package comm's calls are made of below their types: groups of ranks, and the calls on them as a
// kind, an element type, an operation, a root and bytes. Nothing in it is generic.
//
// A collective takes four steps:
//
//  1. [Group.Do] or [Group.Start] checks its [Args] (args.go). Calls that consist of several steps, or that agree on
//     something else, begin with [Collective.Run]: objects.go, membership.go.
//  2. It gets its number and its position among the group's collectives (order.go). A [Collective] has the arguments
//     from then on.
//  3. When its turn has come, perform lets a [Backend] carry it out (perform.go). If the caller's own code panics in it,
//     the group fails (error.go).
//  4. Backends (backend.go) have a switch over kinds:
//     self, if the group has one member (self.go);
//     memory, if all members share memory (memory.go, package shm);
//     stages, if members are on several machines and some share memory there (stages.go, package hier);
//     messages for every other call (messages.go, messagesreduce.go): package plan says who sends what to whom, and
//     package pipeline carries that out.
//
// A blocking call takes a shorter way past perform (runAsIs) if it runs none of the caller's code and memory takes it.
//
// operands.go is what all backends do before and after they combine elements. attach.go is how members get the memory
// that they share: in the first collective that can use it. Sends, receives and probes have no order and no backend:
// p2p.go. world.go is what the groups of a process share.
//
// Locks of package comm and below are taken in this order: of a mesh or a Work; of what a process has once (worker); of
// a group's order; of the heap of Alloc; of an endpoint, before which its writer takes a peer's; of a stream. So what an
// endpoint calls with its mutex held (a backend, a stream's methods) takes no other lock, and waits for nothing.
//
// The package has more lines than a package here should have. All of them but p2p.go work on one Collective and the
// Group that has its turn: a cut between them would make the fields of both public.
package core
