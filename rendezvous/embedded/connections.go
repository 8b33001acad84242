package embedded

import (
	"context"
	"net"
	"sync"

	"github.com/gorun/gorun/env/auth/admission"
)

// clients are the connections of a server's clients that have proven themselves.
type clients struct {
	mu   sync.Mutex
	open map[*clientConn]bool // nil: closed for good
	none chan struct{}        // closed while there is none
}

func newClients() *clients {
	c := &clients{open: make(map[*clientConn]bool), none: make(chan struct{})}
	close(c.none)
	return c
}

// wait returns true when no client is connected that has proven itself, and false when ctx ends, or when over is closed.
func (c *clients) wait(ctx context.Context, over <-chan struct{}) bool {
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

// closeAll closes them, and lets no other client prove itself. gRPC forgets those that have said nothing since.
func (c *clients) closeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		_ = conn.Conn.Close() // nothing of it matters any more
	}
	c.open = nil
}

// A clientListener accepts the connections of clients.
type clientListener struct {
	net.Listener
	clients *clients
}

// Accept waits for the next one.
func (l clientListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &clientConn{conn, l.clients}, nil
}

// A clientConn is the connection of a client.
type clientConn struct {
	net.Conn
	clients *clients
}

// admit is for a client that has proven itself. It returns false if the connection has been dropped.
func (conn *clientConn) admit() bool {
	c := conn.clients
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil || !conn.Conn.(*admission.Conn).Admit() {
		return false
	}
	if len(c.open) == 0 {
		c.none = make(chan struct{})
	}
	c.open[conn] = true
	return true
}

// Close closes the connection.
func (conn *clientConn) Close() error {
	c := conn.clients
	c.mu.Lock()
	if c.open[conn] {
		if delete(c.open, conn); len(c.open) == 0 {
			close(c.none)
		}
	}
	c.mu.Unlock()
	return conn.Conn.Close()
}
