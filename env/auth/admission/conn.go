package admission

import (
	"container/list"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// A Conn is a connection with limits that apply until Admit.
type Conn struct {
	net.Conn
	listener *Listener
	source   netip.Prefix
	late     *time.Timer

	// The listener's mutex guards what follows.
	in       *queue // nil: not yet registered, or admitted, dropped or closed
	place    *list.Element
	order    uint64
	spoke    time.Time
	admitted bool
	reason   error // why it was dropped
}

// Admit tells the Listener that the other end has proven itself. It may be called more than once. It returns false if it is
// too late because the connection has been dropped or closed.
func (c *Conn) Admit() bool {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	if c.listener.dequeue(c, nil) {
		c.admitted = true
	}
	return c.admitted
}

// TurnedAway records for the log that the server has refused the other end because of err. It ignores a client that has hung up,
// and connections that end because the server closes.
func (c *Conn) TurnedAway(err error) {
	c.listener.mu.Lock()
	noted := c.reason != nil // when it was dropped
	c.listener.mu.Unlock()
	if !noted && !HungUp(err) && !errors.Is(err, net.ErrClosed) {
		c.listener.tally.add(c.RemoteAddr(), err)
	}
}

// NetConn returns the connection itself, for use after Admit.
func (c *Conn) NetConn() net.Conn { return c.Conn }

// Close closes the connection.
func (c *Conn) Close() error {
	c.listener.mu.Lock()
	c.listener.dequeue(c, nil)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}

// Read reads. If the connection has been dropped, the error says why.
func (c *Conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	return n, c.explain(err)
}

// Write writes. If the connection has been dropped, the error says why.
func (c *Conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	return n, c.explain(err)
}

func (c *Conn) explain(err error) error {
	if err == nil {
		return nil
	}
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	if c.reason != nil {
		return c.reason
	}
	return err
}

// listen reports whether there is something to read, or never will be. If wait is true, it waits for one of the two.
func (c *Conn) listen(wait bool) (speaks, gone bool) {
	s, ok := c.Conn.(syscall.Conn)
	if !ok {
		return true, false // the next read finds out
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return false, true
	}
	err = raw.Read(func(fd uintptr) bool {
		speaks, gone = peek(int(fd))
		return speaks || gone || !wait
	})
	return speaks, gone || err != nil
}

// number returns the connection's descriptor; 0 if it has none.
func number(conn net.Conn) (n int) {
	s, ok := conn.(syscall.Conn)
	if !ok {
		return 0
	}
	if raw, err := s.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { n = int(fd) })
	}
	return n
}
