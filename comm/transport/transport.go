// Package transport defines how bytes move between the ranks of a world.
//
// A Transport only opens paths: ordered, reliable byte streams from this rank to another. Framing, matching,
// flow control and failure belong to the endpoint above it, plans and reductions to package comm. Packages tcp
// and mem implement it; package transporttest checks any implementation.
//
// Two ranks share at most one stream, whoever opened it. When both dial at once the lower rank's stream wins:
// its peer admits it, and the higher rank's own Dial returns ErrCrossed.
package transport

import (
	"context"
	"errors"
	"net"
)

// ErrCrossed says that the peer is opening a stream of its own, which is about to be handed to Handler.Connected.
var ErrCrossed = errors.New("the peer is dialling this rank itself")

// A Transport opens streams between this rank and its peers. It is safe for concurrent use.
type Transport interface {
	// Dial opens a stream to rank, or returns ErrCrossed. It keeps trying until ctx ends, except when the peer
	// is certainly not there (a refused connection): then it fails at once.
	Dial(ctx context.Context, rank int) (net.Conn, error)
	// Serve starts handing incoming streams to h. It is called once, before the first Dial, and does not block.
	Serve(h Handler)
	// Close stops serving and waits until no call into the Handler is running. Streams stay open.
	Close() error
}

// A Handler receives the streams that peers open. Its methods may be called from several goroutines.
type Handler interface {
	// Admit says whether a stream that rank wants to open is wanted. After true, Connected follows.
	Admit(rank int) bool
	// Connected hands over an admitted stream; conn is nil when it broke before it was ready.
	Connected(rank int, conn net.Conn)
}
