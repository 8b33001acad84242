package shm

import (
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/comm/transport"
)

// A conn is a stream as a net.Conn, for whoever cannot use it as it is.
type conn struct {
	s    *stream
	from net.Addr
	to   net.Addr

	mu     sync.Mutex
	news   sync.Cond
	bells  *os.File // the socket, once somebody has had to wait
	heard  sync.WaitGroup
	closed bool
}

// newConn makes a connection of segment, which it owns from now on, and a duplicate of socket, out of sight of the Go runtime,
// which would be woken by every bell.
func newConn(segment *Segment, socket *net.UnixConn, maker bool) (*conn, error) {
	fd, err := duplicate(socket)
	if err != nil {
		_ = segment.Close()
		return nil, err
	}
	s, err := newStream(segment, fd, maker)
	if err != nil {
		return nil, err
	}
	c := &conn{s: s, from: socket.LocalAddr(), to: socket.RemoteAddr()}
	c.news.L = &c.mu
	return c, nil
}

func duplicate(socket *net.UnixConn) (fd int, err error) {
	raw, err := socket.SyscallConn()
	if err != nil {
		return -1, err
	}
	if failed := raw.Control(func(s uintptr) { fd, err = unix.FcntlInt(s, unix.F_DUPFD_CLOEXEC, 0) }); failed != nil {
		return -1, failed
	}
	return fd, os.NewSyscallError("fcntl", err)
}

// Stream implements transport.Pollable.
func (c *conn) Stream() (transport.Stream, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, net.ErrClosed
	}
	c.closed = true
	return c.s, nil
}

func (c *conn) Read(b []byte) (n int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if c.closed {
			return 0, net.ErrClosed
		}
		n, err = c.s.TryRead(b)
		if n > 0 || err != nil || len(b) == 0 {
			return n, err
		}
		if err := c.sleep(); err != nil {
			return 0, err
		}
	}
}

func (c *conn) Write(b []byte) (n int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n < len(b) {
		if c.closed {
			return n, net.ErrClosed
		}
		m, err := c.s.TryWrite([][]byte{b[n:]})
		if n += m; err != nil {
			return n, err
		}
		if m > 0 {
			continue
		}
		if err := c.sleep(); err != nil {
			return n, err
		}
	}
	return n, nil
}

// sleep waits until there may be something to read, or room. The mutex is held.
func (c *conn) sleep() error {
	if c.bells == nil {
		fd, err := unix.FcntlInt(uintptr(c.s.fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return os.NewSyscallError("fcntl", err)
		}
		c.bells = os.NewFile(uintptr(fd), "bells")
		raw, err := c.bells.SyscallConn()
		if err != nil {
			return err
		}
		c.heard.Go(func() { _ = raw.Read(c.awaken) })
	}
	if c.s.Arm(true) == unix.POLLIN {
		c.news.Wait()
	}
	return nil
}

// awaken lets those who wait look, because something has come from the socket, and says whether nothing more will.
func (c *conn) awaken(uintptr) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.s.hear()
	c.news.Broadcast()
	return c.s.ended || c.closed
}

func (c *conn) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	c.news.Broadcast()
	c.mu.Unlock()
	if c.bells != nil {
		_ = c.bells.Close()
		c.heard.Wait()
	}
	return c.s.Close()
}

func (c *conn) LocalAddr() net.Addr  { return c.from }
func (c *conn) RemoteAddr() net.Addr { return c.to }

func (*conn) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (*conn) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (*conn) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }
