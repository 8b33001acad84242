// Package shm has the collectives of ranks that share memory. A [Team] is the ranks of a group on one machine, which share a segment, as
// one of them sees them. Packages below it have its parts:
//
//   - segment: sealed memfds;
//   - stream: bytes from one process to another, through rings in a segment;
//   - acceptor: passes the descriptors of segments and streams to other ranks;
//   - heap: registered memory, which other ranks use in place.
//
// How a Team works. Every rank has a clock in shared memory, which it alone advances. The clock counts the operations that the rank
// has begun, and the steps of the operation under way. A rank writes only to its own memory: it has slots, from which the others read.
// A reader waits until the clock of the writer says that a slot is filled. The writer reuses a slot when the clocks of its readers say
// that they have read it. There is no other synchronisation: every cache line has one writer, numbers only grow, and all ranks compute
// the same schedule from their calls.
//
// Short operations use an LL protocol instead of slots, and no clocks while no rank is late (ll.go). Buffers in a heap are used in place
// (inplace.go). Before a rank uses data of another one, it makes sure that both have made the same calls (history.go).
//
// Tests on real processors cannot meet all orders in which ranks may see each other's stores. With the build tag schedule, shared memory
// belongs to a machine of package schedule, and tests choose the orders (schedule_test.go).
package shm
