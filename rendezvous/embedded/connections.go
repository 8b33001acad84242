package embedded

import (
	"context"
	"errors"
	"net"
	"sync"

	"google.golang.org/grpc/stats"
)

// connections counts the clients that have been let in.
type connections struct {
	mu   sync.Mutex
	n    int
	none chan struct{} // closed while n is 0
}

func newConnections() *connections {
	c := &connections{none: make(chan struct{})}
	close(c.none)
	return c
}

// wait returns true when there are none, and false when ctx ends, or when over is closed.
func (c *connections) wait(ctx context.Context, over <-chan struct{}) bool {
	c.mu.Lock()
	none := c.none
	c.mu.Unlock()
	select {
	case <-none:
		return true
	case <-ctx.Done():
	case <-over:
	}
	return false
}

// HandleConn is called by gRPC once for each begin and end.
func (c *connections) HandleConn(_ context.Context, s stats.ConnStats) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch s.(type) {
	case *stats.ConnBegin:
		if c.n++; c.n == 1 {
			c.none = make(chan struct{})
		}
	case *stats.ConnEnd:
		if c.n--; c.n == 0 {
			close(c.none)
		}
	}
}

// TagConn does nothing.
func (c *connections) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// TagRPC does nothing.
func (c *connections) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC does nothing.
func (c *connections) HandleRPC(context.Context, stats.RPCStats) {}

// A clientListener is a listener that can hang up on everybody who has come in by it. gRPC forgets those that have not proven
// themselves yet.
type clientListener struct {
	net.Listener
	mu   sync.Mutex
	open map[*clientConn]bool // nil: closed for good
}

// A clientConn is a connection that its doorway knows of.
type clientConn struct {
	net.Conn
	by *clientListener
}

func newClientListener(l net.Listener) *clientListener {
	return &clientListener{Listener: l, open: make(map[*clientConn]bool)}
}

// Accept waits for the next one.
func (d *clientListener) Accept() (net.Conn, error) {
	c, err := d.Listener.Accept()
	if err != nil {
		return nil, err
	}
	v := &clientConn{Conn: c, by: d}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open == nil {
		return nil, errors.Join(net.ErrClosed, c.Close())
	}
	d.open[v] = true
	return v, nil
}

// Close ends the visit.
func (v *clientConn) Close() error {
	v.by.mu.Lock()
	delete(v.by.open, v)
	v.by.mu.Unlock()
	return v.Conn.Close()
}

// closeAll closes the listener, and hangs up.
func (d *clientListener) closeAll() {
	_ = d.Close() // gRPC may have done so
	d.mu.Lock()
	defer d.mu.Unlock()
	for v := range d.open {
		_ = v.Conn.Close() // nothing of it matters any more
	}
	d.open = nil
}
