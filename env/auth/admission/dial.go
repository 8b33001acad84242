package admission

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"syscall"
	"time"

	"github.com/gorun/gorun/env/proc"
)

const (
	// firstTimeout is how long Connect waits for an answer before it dials again. The kernel itself tries again after a second.
	firstTimeout, longestTimeout = 250 * time.Millisecond, 5 * time.Second
	pause                        = 10 * time.Millisecond // between two calls
)

// A DialFunc connects like net.Dialer.DialContext.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// Connect calls dial, and repeats the call while there is no answer or no room, because the kernel drops some connections if
// many clients dial at once. Once connected, a client has a place in the server's queue and should wait: a new connection would
// be the last in the queue.
func Connect(ctx context.Context, dial DialFunc, network, address string) (net.Conn, error) {
	for timeout := firstTimeout; ; {
		attempt, cancel := context.WithTimeout(ctx, jitter(timeout))
		conn, err := dial(attempt, network, address)
		cancel()
		if err == nil {
			proc.OwnConn(conn)
		}
		netErr, _ := errors.AsType[net.Error](err)
		full := errors.Is(err, syscall.EAGAIN) // of a Unix socket
		if err == nil || ctx.Err() != nil || !full && !HungUp(err) && (netErr == nil || !netErr.Timeout()) {
			return conn, err
		}
		if !full {
			timeout = min(2*timeout, longestTimeout)
		}
		select {
		case <-time.After(jitter(pause)):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// jitter returns about d, so that clients that were dropped together do not come back together.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d) }

// HungUp reports whether err means that the other end has closed the connection.
func HungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
