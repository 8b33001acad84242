//go:build !linux

package acceptor

import (
	"context"
	"errors"
	"log/slog"
	"net"

	"github.com/gorun/gorun/comm/internal/shm/segment"
	"github.com/gorun/gorun/comm/internal/transport"
)

// errUnsupported says why there is no shared memory.
var errUnsupported = errors.New("it takes Linux")

// An Acceptor passes segments to other ranks.
type Acceptor struct{}

// Listen fails: there is no shared memory here.
func Listen([]byte, *slog.Logger) (*Acceptor, error) { return nil, errUnsupported }

// Address returns nothing.
func (*Acceptor) Address() string { return "" }

// Export does nothing.
func (*Acceptor) Export(uint64, *segment.Segment) {}

// Remove does nothing.
func (*Acceptor) Remove(uint64) {}

// Close does nothing.
func (*Acceptor) Close() error { return nil }

// Serve does nothing.
func (*Acceptor) Serve(Self, transport.Handler) {}

// StopServing does nothing.
func (*Acceptor) StopServing() {}

// Dial fails.
func (Self) Dial(context.Context, string, []byte, int) (net.Conn, error) { return nil, errUnsupported }

// Attach fails.
func Attach(context.Context, string, []byte, uint64) (*segment.Segment, error) {
	return nil, errUnsupported
}
