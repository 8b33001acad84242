// Package acceptor passes descriptors of shared memory between the ranks of a machine. An [Acceptor] listens on a Unix socket.
// Other ranks [Attach] the segments that its rank has exported, and [Place.Dial] streams to it.
package acceptor
