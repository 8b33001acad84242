// Package acceptor passes file descriptors of shared memory between the ranks of a machine. An [Acceptor] listens on a Unix socket.
// Other ranks [Attach] the segments that its rank has exported, and open streams to it ([Self.Dial]).
package acceptor

// A Self says which rank this is.
type Self struct {
	World uint64
	Rank  int
	Ranks int // in the world
	Here  int // on this machine
}
