// Package spool writes to destinations that may block: a terminal that is stopped (^S), a pipe that nobody reads, a file
// system that does not answer.
//
// Nobody waits for a write. Writers put data into the queue of a destination. A goroutine of that queue writes the data,
// and lives only as long as there is something to write. A queue keeps the order of its data, and never mixes other data
// into that of one Put.
//
// The sources bound the queues: a Source that has more than its share in a queue asks Full when it may go on, and reads no
// more from its worker until then. So only the worker that writes is slowed down, through its own pipe: another worker's
// line waits for at most one share of each other source.
//
// At the end of the process, Drain waits for readers that continue to read, gives up the others, and says what was lost. A
// blocked write cannot be interrupted: its goroutine is abandoned.
package spool
