// Package stream carries bytes from one process to another, both ways, through a segment that they share and a socket that wakes
// the one that sleeps. The two rings of a stream are in ring_linux.go. [Create] makes the memory of a stream, and [New] one of its
// ends: a [Conn], which package acceptor hands to both ranks.
package stream
