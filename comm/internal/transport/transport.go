// Package transport defines how bytes move between the ranks of a world.
//
// A Transport opens ordered, reliable byte streams from this rank to others, and nothing more. Framing, matching, flow
// control and failures belong to package endpoint above it. Packages tcp and near implement a Transport. Package
// transporttest has one for tests, and tests any implementation.
//
// Two ranks share at most one stream, whoever opened it. When both dial at once the lower rank's stream wins:
// its peer admits it, and the higher rank's own Dial returns ErrCrossed.
//
// A stream is a net.Conn. If it is Pollable, the endpoint turns it into a Stream, which never blocks. Then the
// goroutine that waits for a message reads it itself, without a goroutine in between. If the Stream is also a
// MemoryStream, the goroutine reads the message where the sender has put it.
package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
)

// ErrCrossed says that the peer is opening a stream of its own, which is about to be handed to Handler.Connected.
var ErrCrossed = errors.New("the peer is dialling this rank itself")

// A Transport opens streams between this rank and its peers. It is safe for concurrent use.
type Transport interface {
	// Dial opens a stream to rank, or returns ErrCrossed. It tries again until ctx ends. If the peer is certainly not
	// there (it refuses the connection), Dial fails at once.
	Dial(ctx context.Context, rank int) (net.Conn, error)
	// Serve starts handing incoming streams to h. It is called once, before the first Dial, and does not block.
	Serve(h Handler)
	// Close stops serving and waits until no call into the Handler is running. Streams stay open. After it, Dial may fail.
	Close() error
}

// A Handler receives the streams that peers open. Its methods may be called from several goroutines.
type Handler interface {
	// Admit reports whether this rank wants the stream that rank opens. If it returns true, a call of Connected follows.
	Admit(rank int) bool
	// Connected gets an admitted stream. conn is nil if the stream broke before it was ready.
	Connected(rank int, conn net.Conn)
}

// Alone is the transport of a world of one rank, which has no peers.
type Alone struct{}

// Dial fails.
func (Alone) Dial(_ context.Context, rank int) (net.Conn, error) {
	return nil, fmt.Errorf("there is no rank %d in a world of one", rank)
}

// Serve does nothing: nobody calls.
func (Alone) Serve(Handler) {}

// Close does nothing.
func (Alone) Close() error { return nil }

// A Pollable is a net.Conn that can become a Stream.
type Pollable interface {
	net.Conn
	// Stream turns the net.Conn into a Stream. After that only the Stream may be used.
	Stream() (Stream, error)
}

// A Stream is a stream of bytes that never blocks. Only one goroutine at a time may use it, except for Shutdown.
type Stream interface {
	// TryRead reads the bytes that have come into b. It returns 0 and nil if there are none, and io.EOF if none will come.
	TryRead(b []byte) (int, error)
	// TryWrite writes as much of v, one buffer after the other, as there is space for. If it has written a part of a
	// buffer, the next call must begin with the rest of that buffer. The caller may replace the buffers after it. No
	// buffer in v may be the first byte alone of a message that the caller may still withdraw.
	TryWrite(v [][]byte) (int, error)
	// Descriptor returns the file descriptor that becomes ready, as poll(2) says, once Arm has been called.
	Descriptor() int
	// Arm announces a wait until the stream is readable or, if writable is set, writable. It returns the events of
	// poll(2) to wait for. If the stream is ready already, so is the descriptor.
	Arm(writable bool) (events uint32)
	// Shutdown ends the stream for both sides, as if the other side had closed it. It may be called at any time.
	Shutdown()
	// Close releases the stream's resources, and ends the stream for the other side.
	Close() error
}

// A Coalescer is a Stream on which a short write costs as much as a long one. It can collect short writes and send them
// together.
type Coalescer interface {
	Stream
	// Coalesce(true) holds short writes back while the other side has not acknowledged earlier ones (Nagle's algorithm).
	// Coalesce(false) sends at once, beginning with what has been held back.
	Coalesce(on bool)
	// CoalesceLimit returns the length in bytes of the longest write that is worth holding back.
	CoalesceLimit() int
	// Acknowledge acknowledges at once what has been read. Without it the acknowledgement may be delayed.
	Acknowledge()
}

// A Diagnoser is a Stream that may find out why the other side does not answer.
type Diagnoser interface {
	Stream
	// Diagnose returns the likely reason, or nothing.
	Diagnose() string
}

// A MemoryStream is a Stream in shared memory, whose bytes can be read in place. Reads and writes take no system call,
// so there is no need to batch them.
type MemoryStream interface {
	Stream
	// Put writes a and b, if there is space for both now, and reports whether it has.
	Put(a, b []byte) bool
	// Peek polls up to so many times for bytes to read, and returns as many of them as are contiguous. A faulty or
	// hostile peer may change them until Skip.
	Peek(polls int) []byte
	// Skip marks n bytes that Peek has returned as read.
	Skip(n int)
}
