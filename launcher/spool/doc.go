// Package spool writes where a write may block: to a terminal that is stopped (^S), to a pipe that nobody reads, to a file
// system that does not answer.
//
// Nobody waits for a write. Whoever has something to write puts it into the queue of its destination; a goroutine of that
// queue writes it, and lives only as long as there is something to write. A queue keeps the order in which things were put
// into it. What two Sources put is never mixed within one Put.
//
// Queues are bounded by those who fill them: a Source that has more than its share waiting asks Full when it may go on,
// and reads no more from its worker until then. So the worker that writes is slowed down, through its own pipe, and nobody
// else: another worker's line waits for one share of each other source at most.
//
// At the end of the process Drain waits for readers that go on reading, gives up the others, and says what was lost. A write
// that blocks cannot be interrupted: its goroutine is left behind.
package spool
