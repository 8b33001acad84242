package admission

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"syscall"
	"time"
)

const (
	// firstPatience is how long Connect waits for an answer before it asks again. The kernel itself does so after a second.
	firstPatience, mostPatience = 250 * time.Millisecond, 5 * time.Second
	pause                       = 10 * time.Millisecond // before it does
)

// A DialFunc connects, as that of net.Dialer does.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// Connect is dial, but calls again as long as there is no answer, or no room: where many call, the kernel forgets some. Once it is
// connected a caller has its place in the queue, and keeps it by waiting.
func Connect(ctx context.Context, dial DialFunc, network, address string) (net.Conn, error) {
	for patience := firstPatience; ; {
		attempt, cancel := context.WithTimeout(ctx, jitter(patience))
		conn, err := dial(attempt, network, address)
		cancel()
		timeout, _ := errors.AsType[net.Error](err)
		full := errors.Is(err, syscall.EAGAIN) // of a Unix socket
		if err == nil || ctx.Err() != nil || !full && !HungUp(err) && (timeout == nil || !timeout.Timeout()) {
			return conn, err
		}
		if !full {
			patience = min(2*patience, mostPatience)
		}
		select {
		case <-time.After(jitter(pause)):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// jitter is about d: those who were dropped together are not to come back together.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d) }

// HungUp reports whether err, of a connection, says that its other end has closed it.
func HungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
