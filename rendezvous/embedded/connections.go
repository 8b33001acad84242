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

// A clientListener is a listener that can close all connections that it has accepted. gRPC forgets those that have not proven
// themselves yet.
type clientListener struct {
	net.Listener
	mu   sync.Mutex
	open map[*clientConn]bool // nil: closed for good
}

// A clientConn is a connection that a clientListener has accepted.
type clientConn struct {
	net.Conn
	listener *clientListener
}

func newClientListener(l net.Listener) *clientListener {
	return &clientListener{Listener: l, open: make(map[*clientConn]bool)}
}

// Accept waits for the next one.
func (l *clientListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	conn := &clientConn{Conn: c, listener: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		return nil, errors.Join(net.ErrClosed, c.Close())
	}
	l.open[conn] = true
	return conn, nil
}

// Close closes the connection.
func (conn *clientConn) Close() error {
	conn.listener.mu.Lock()
	delete(conn.listener.open, conn)
	conn.listener.mu.Unlock()
	return conn.Conn.Close()
}

// closeAll closes the listener, and hangs up.
func (l *clientListener) closeAll() {
	_ = l.Close() // gRPC may have done so
	l.mu.Lock()
	defer l.mu.Unlock()
	for conn := range l.open {
		_ = conn.Conn.Close() // nothing of it matters any more
	}
	l.open = nil
}
