package stream

import (
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/comm/internal/shm/segment"
	"github.com/gorun/gorun/comm/internal/transport"
	"github.com/gorun/gorun/env/proc"
)

// A Conn is a stream as a net.Conn, whose calls block.
type Conn struct {
	s    *Stream
	from net.Addr
	to   net.Addr

	mu        sync.Mutex
	changed   sync.Cond
	doorbells *os.File // the socket, once a call has had to wait
	receiver  sync.WaitGroup
	closed    bool
}

// New makes an end of a stream of its memory, which it owns, and a duplicate of socket. The Go runtime does not know of the duplicate;
// otherwise every doorbell would wake it. The creator of the memory has one end, the process that has attached it the other one.
func New(mem *segment.Segment, socket *net.UnixConn, creator bool) (*Conn, error) {
	c := &Conn{s: &Stream{segment: mem, fd: -1}, from: socket.LocalAddr(), to: socket.RemoteAddr()}
	c.changed.L = &c.mu
	err := c.s.attach(creator)
	if err == nil {
		c.s.fd, err = duplicate(socket)
	}
	if err != nil {
		_ = c.s.Close()
		return nil, err
	}
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
	if err == nil {
		proc.Own(fd)
	}
	return fd, os.NewSyscallError("fcntl", err)
}

// Stream implements transport.Pollable.
func (c *Conn) Stream() (transport.Stream, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, net.ErrClosed
	}
	c.closed = true
	return c.s, nil
}

// Read implements net.Conn.
func (c *Conn) Read(b []byte) (n int, err error) {
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

// Write implements net.Conn.
func (c *Conn) Write(b []byte) (n int, err error) {
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

// sleep waits until there may be bytes to read, or space to write. The mutex is held.
func (c *Conn) sleep() error {
	if c.doorbells == nil {
		fd, err := unix.FcntlInt(uintptr(c.s.fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return os.NewSyscallError("fcntl", err)
		}
		proc.Own(fd)
		c.doorbells = os.NewFile(uintptr(fd), "doorbells")
		raw, err := c.doorbells.SyscallConn()
		if err != nil {
			return err
		}
		c.receiver.Go(func() { _ = raw.Read(c.wake) })
	}
	if c.s.Arm(true) == unix.POLLIN {
		c.changed.Wait()
	}
	return nil
}

// wake wakes the calls that wait, because the socket is readable. It reports whether nothing more will come.
func (c *Conn) wake(uintptr) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.s.clearDoorbells()
	c.changed.Broadcast()
	return c.s.ended || c.closed
}

// Close implements net.Conn.
func (c *Conn) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	c.changed.Broadcast()
	c.mu.Unlock()
	if c.doorbells != nil {
		_ = c.doorbells.Close()
		c.receiver.Wait()
	}
	return c.s.Close()
}

// LocalAddr implements net.Conn.
func (c *Conn) LocalAddr() net.Addr { return c.from }

// RemoteAddr implements net.Conn.
func (c *Conn) RemoteAddr() net.Addr { return c.to }

// SetDeadline fails.
func (*Conn) SetDeadline(time.Time) error { return os.ErrNoDeadline }

// SetReadDeadline fails.
func (*Conn) SetReadDeadline(time.Time) error { return os.ErrNoDeadline }

// SetWriteDeadline fails.
func (*Conn) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }
