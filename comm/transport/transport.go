// Package transport defines how bytes move between the ranks of a world.
//
// A Transport only opens paths: ordered, reliable byte streams from this rank to another. Framing, matching,
// flow control and failure belong to the endpoint above it, plans and reductions to package comm. Packages tcp,
// near and mem implement it; package transporttest checks any implementation.
//
// Two ranks share at most one stream, whoever opened it. When both dial at once the lower rank's stream wins:
// its peer admits it, and the higher rank's own Dial returns ErrCrossed.
//
// A stream is a net.Conn. One that is Pollable too can be had as a Stream, which never waits: who waits for a message
// then fetches it itself, without a goroutine between. If that is a Window, it fetches it from where the sender has put it.
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

// A Pollable is a stream that can be had as one that never waits.
type Pollable interface {
	net.Conn
	// Stream turns the net.Conn into a Stream: after success nothing but that may be used.
	Stream() (Stream, error)
}

// A Stream is a stream of bytes that never waits. One goroutine at a time uses it, except for Shutdown.
type Stream interface {
	// TryRead reads what is there into b: 0 and nil if that is nothing, io.EOF if nothing will be.
	TryRead(b []byte) (int, error)
	// TryWrite writes as much of v, one slice after the other, as there is room for. Next time a slice that has been written in part
	// is continued; others may come in the place of those after it. None of v is the first byte alone of what may not come.
	TryWrite(v [][]byte) (int, error)
	// Descriptor is what tells, as poll(2) does, when to try again, once Arm has been called.
	Descriptor() int
	// Arm announces a wait until there is something to read or, if room is set, room to write. It returns the events of
	// poll(2) to wait for; if it is so already, one of them is there.
	Arm(room bool) (events uint32)
	// Shutdown ends the stream for both sides, as if each had been left by the other. It may be called at any time.
	Shutdown()
	// Close frees what the stream holds; for the other side it has ended.
	Close() error
}

// A Gatherer is a Stream on which a short write costs as much as a long one, so that several better go together.
type Gatherer interface {
	Stream
	// Gather says whether short writes wait: as long as the other side has not let know that it has read those before. What
	// waits goes at once when that ends.
	Gather(on bool)
	// Acknowledge lets the other side know at once what has been read. It does so by itself, but may take its time.
	Acknowledge()
}

// A Diagnoser is a Stream that may know why the other side seems to be silent.
type Diagnoser interface {
	Stream
	// Diagnose says so, or nothing.
	Diagnose() string
}

// A Window is a Stream whose bytes can be had where they lie. To read or write takes no call of the system, so that there is no
// need to do much at once.
type Window interface {
	Stream
	// Put writes a and b, if that can be done at once and as a whole, and says whether it has.
	Put(a, b []byte) bool
	// Peek looks, so many times, for something to read, and returns as much of it as lies in one piece. Its bytes may change
	// until Skip, if the other side is not what it should be.
	Peek(looks int) []byte
	// Skip says that n bytes of what Peek has returned have been read.
	Skip(n int)
}
