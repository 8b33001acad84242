package tcp

import (
	"errors"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/comm/internal/transport"
	"github.com/gorun/gorun/env/proc"
)

// pollable makes stream, which is b or TLS over it, Pollable.
func pollable(b *bundle, stream net.Conn) net.Conn {
	if secured, ok := stream.(secureConn); ok {
		return pollableSecure{secured, pollableBundle{b}}
	}
	return pollableBundle{b}
}

type pollableBundle struct{ *bundle }

// Stream implements transport.Pollable. It takes the sockets away from the Go runtime, which every packet would wake.
func (c pollableBundle) Stream() (transport.Stream, error) {
	if len(c.conns) == 1 {
		s, err := socket(c.conns[0])
		if err != nil {
			return nil, err
		}
		return s, c.Close()
	}
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	proc.Own(poll)
	s := &bundleStream{in: c.in, out: c.out, poll: poll, awaited: make([]uint32, len(c.conns))}
	for _, conn := range c.conns {
		var one *stream
		if one, err = socket(conn); err != nil {
			break
		}
		s.conns = append(s.conns, one)
	}
	if err == nil {
		err = s.await()
	}
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, c.Close()
}

// A bundleStream implements transport.Stream over several connections.
type bundleStream struct {
	conns   []*stream
	in, out cursor
	cut     [mostBuffers][]byte // scratch of next

	poll     int      // an epoll of the connections in use: one descriptor for all
	awaited  []uint32 // its events, by connection; 0: it does not have that connection
	writable bool     // Arm waits for that
}

func (s *bundleStream) TryRead(b []byte) (read int, err error) {
	for err == nil && read < len(b) {
		part := b[read:]
		part = part[:min(len(part), s.in.left)]
		var n int
		n, err = s.conns[s.in.conn].TryRead(part)
		read += n
		if s.in.advance(n) {
			s.moved()
		}
		if n < len(part) {
			break
		}
	}
	return read, err
}

func (s *bundleStream) TryWrite(v [][]byte) (written int, err error) {
	defer clear(s.cut[:]) // do not keep the caller's memory alive
	for err == nil {
		part, length := s.next(v, written)
		if length == 0 {
			break
		}
		var n int
		n, err = s.conns[s.out.conn].TryWrite(part)
		written += n
		if s.out.advance(n) {
			s.moved()
		}
		if n < length {
			break
		}
	}
	return written, err
}

// next returns the bytes of v after the first skip ones, as many as fit into the rest of the stripe.
func (s *bundleStream) next(v [][]byte, skip int) (part [][]byte, length int) {
	part = s.cut[:0]
	for _, b := range v[:min(len(v), mostBuffers)] {
		n := min(skip, len(b))
		skip -= n
		if b = b[n:min(len(b), n+s.out.left-length)]; len(b) > 0 {
			part = append(part, b)
			length += len(b)
		}
	}
	return part, length
}

func (s *bundleStream) Descriptor() int { return s.poll }

func (s *bundleStream) Arm(writable bool) uint32 {
	s.writable = writable
	s.moved()
	return unix.POLLIN // an epoll is readable when it has an event
}

// moved updates the epoll after a cursor has moved.
func (s *bundleStream) moved() {
	if s.await() != nil {
		s.Shutdown() // which makes the descriptor ready
	}
}

// await puts the connections in use into the epoll, and removes the others: they may be ready long before they are
// used, or may have ended, which does not matter before they are used. The epoll is never empty.
func (s *bundleStream) await() error {
	for _, now := range [...]bool{true, false} {
		for i := range s.conns {
			events := uint32(0)
			if i == s.in.conn {
				events = unix.EPOLLIN
			}
			if s.writable && i == s.out.conn {
				events |= unix.EPOLLOUT
			}
			if had := s.awaited[i]; events != had && (events != 0) == now {
				if err := s.control(i, had, events); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (s *bundleStream) control(i int, had, events uint32) error {
	op := unix.EPOLL_CTL_MOD
	switch {
	case had == 0:
		op = unix.EPOLL_CTL_ADD
	case events == 0:
		op = unix.EPOLL_CTL_DEL
	}
	s.awaited[i] = events
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(s.poll, op, s.conns[i].fd, &unix.EpollEvent{Events: events}))
}

func (s *bundleStream) Shutdown() {
	for _, c := range s.conns {
		c.Shutdown()
	}
}

// Close is called once.
func (s *bundleStream) Close() error {
	proc.Disown(s.poll)
	err := os.NewSyscallError("close", unix.Close(s.poll))
	for _, c := range s.conns {
		err = errors.Join(err, c.Close())
	}
	return err
}
