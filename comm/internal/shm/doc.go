// Package shm is how ranks of one machine work together through memory that they share.
//
// A [Segment] is such memory: a sealed memfd, without a name that could be left behind, gone with the last process that
// maps it. A [Desk] hands segments to the other ranks, over a socket without a file. A [Team] is the ranks of a group in a
// segment of theirs, and has the collectives. All else travels through streams of bytes, each in a segment of two ranks, which a
// desk takes calls for: see ring.go, and package near.
//
// How a Team works. Every rank has a clock, which it alone advances: it tells how many operations it has been through, and
// how many steps of the one under way. It has slots for others to read from, and writes only there and in its own
// buffers. Whoever needs what another rank has in a slot waits until that one's clock says that it is there; whoever wants
// to use a slot again waits until the clocks of its readers say that they are done. That is all the synchronisation
// there is: one writer for every cache line, numbers that only grow, and the same schedule on all ranks, worked out from
// what they call.
//
// Short operations do without slots and, while nobody is late, without clocks: see letters.go.
//
// A [Heap] is memory for buffers that other ranks use where they lie: they get its segments when a collective of theirs first
// comes to them. A rank shows where its buffer is, and waits until the others have done with it; see direct.go.
//
// No test with real processors meets all orders in which these see what others have stored. With the build tag schedule all that
// is shared is on a machine of package schedule, and tests go through orders: see schedule_test.go.
//
// Ranks that wait look at the clock for some microseconds, then give the processor to others in between, and after about
// a millisecond sleep until a clock has been advanced; see wait.go.
package shm
