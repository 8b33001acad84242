package embedded

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/gorun/gorun/env/auth/admission"
)

// clients are the connections of a server's clients. gRPC itself forgets those that have not proven themselves yet.
type clients struct {
	mu       sync.Mutex
	open     map[*clientConn]bool // whether it has proven itself; nil: closed for good
	admitted int
	none     chan struct{} // closed while admitted is 0
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

// closeAll closes all connections, and those that come after.
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
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	conn := &clientConn{accepted, l.clients}
	l.clients.mu.Lock()
	defer l.clients.mu.Unlock()
	if l.clients.open == nil {
		return nil, errors.Join(net.ErrClosed, accepted.Close())
	}
	l.clients.open[conn] = false
	return conn, nil
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
	if c.open[conn] = true; c.admitted == 0 {
		c.none = make(chan struct{})
	}
	c.admitted++
	return true
}

// Close closes the connection.
func (conn *clientConn) Close() error {
	c := conn.clients
	c.mu.Lock()
	if c.open[conn] {
		if c.admitted--; c.admitted == 0 {
			close(c.none)
		}
	}
	delete(c.open, conn)
	c.mu.Unlock()
	return conn.Conn.Close()
}
