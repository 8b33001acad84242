// Package stream carries bytes between two processes, in both directions, through two rings in a segment that they share (ring_linux.go)
// and a socket that wakes a process that sleeps. [Create] makes the memory of a stream. [New] makes one of its ends, a [Conn]. Package
// acceptor connects the ranks.
package stream
