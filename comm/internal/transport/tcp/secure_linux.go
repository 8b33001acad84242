package tcp

import (
	"crypto/tls"
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/comm/internal/transport"
	"github.com/gorun/gorun/env/proc"
)

const (
	// recordLength is how many bytes of a message TLS puts into one record at most.
	recordLength = 16 << 10
	// batchLength is how many bytes are encrypted before they are written, so that one system call writes several records.
	batchLength = 8 * recordLength
)

type pollableSecure struct {
	secureConn
	conn transport.Pollable
}

// Stream implements transport.Pollable.
func (c pollableSecure) Stream() (transport.Stream, error) {
	below, err := c.conn.Stream()
	if err != nil {
		return nil, err
	}
	s := &secureStream{tls: c.Conn, wire: c.below, more: true}
	s.wire.stream = below
	if s.poll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err == nil {
		proc.Own(s.poll)
		err = s.control(unix.EPOLL_CTL_ADD, below.Descriptor(), below.Arm(false))
	}
	if err == nil {
		err = s.setReady(true) // the handshake may have read more than its own
	}
	if err != nil {
		return nil, errors.Join(os.NewSyscallError("epoll", err), s.Close())
	}
	return s, nil
}

// A secureStream implements transport.Coalescer and transport.Diagnoser by TLS over another stream, as far as that
// does.
type secureStream struct {
	tls    *tls.Conn
	wire   *wire
	record [recordLength]byte

	// Encrypted bytes must be sent as they are. While some of them wait in wire.out, TryWrite reports the last byte as
	// not written, so that the caller calls it again. Then that byte is skipped.
	held bool

	poll int  // an epoll of the stream below and, if more is set, of alwaysReady: one descriptor for both
	more bool // the last read filled its buffer: TLS may hold decrypted bytes that the stream below knows nothing of
}

func (s *secureStream) Coalesce(on bool) {
	if g, ok := s.wire.stream.(transport.Coalescer); ok {
		g.Coalesce(on)
	}
}

func (s *secureStream) CoalesceLimit() int {
	if g, ok := s.wire.stream.(transport.Coalescer); ok {
		return g.CoalesceLimit()
	}
	return 0
}

func (s *secureStream) Acknowledge() {
	if g, ok := s.wire.stream.(transport.Coalescer); ok {
		g.Acknowledge()
	}
}

func (s *secureStream) TryRead(b []byte) (read int, err error) {
	for err == nil && read < len(b) {
		var n int
		n, err = s.tls.Read(b[read:])
		read += n
	}
	if errors.Is(err, errWouldBlock) {
		err = nil
	}
	if len(s.wire.out) > 0 { // TLS may have answered, and no write follows
		_, _ = s.wire.flush() // the next write has the error
	}
	if more := read == len(b); err == nil && more != s.more {
		s.more, err = more, os.NewSyscallError("epoll_ctl", s.setReady(more))
	}
	return read, err
}

func (s *secureStream) TryWrite(v [][]byte) (written int, err error) {
	if all, err := s.wire.flush(); !all {
		return 0, err
	}
	if s.held {
		s.held, written = false, 1
	}
	for err == nil {
		before := written
		for len(s.wire.out) < batchLength {
			record := s.nextRecord(v, written)
			if len(record) == 0 {
				break
			}
			if _, err = s.tls.Write(record); err != nil {
				return written, err
			}
			written += len(record)
		}
		if written == before {
			break
		}
		if all, err := s.wire.flush(); !all {
			s.held = true
			return written - 1, err
		}
	}
	return written, err
}

// flush writes out to the stream, as far as there is space, and reports whether that was all.
func (w *wire) flush() (all bool, err error) {
	for len(w.out) > 0 {
		n, err := w.stream.TryWrite([][]byte{w.out})
		if w.out = w.out[:copy(w.out, w.out[n:])]; err != nil || n == 0 {
			return false, err
		}
	}
	return true, nil
}

// nextRecord returns the bytes of the next record: those of v after the first skip ones, recordLength at most. It never
// ends with the first byte of a longer buffer. If that byte were held back, the buffer would seem untouched, and the
// caller could withdraw it.
func (s *secureStream) nextRecord(v [][]byte, skip int) []byte {
	record := s.record[:0]
	for _, b := range v {
		n := min(skip, len(b))
		skip -= n
		b = b[n:]
		space := cap(record) - len(record)
		if len(record) == 0 && len(b) >= space {
			return b[:space]
		}
		if space == 1 && n == 0 && len(b) > 1 {
			break
		}
		record = append(record, b[:min(len(b), space)]...)
		if len(record) == cap(record) {
			break
		}
	}
	return record
}

func (s *secureStream) Descriptor() int { return s.poll }

func (s *secureStream) Arm(writable bool) uint32 {
	if s.control(unix.EPOLL_CTL_MOD, s.wire.stream.Descriptor(), s.wire.stream.Arm(writable || len(s.wire.out) > 0)) != nil {
		s.Shutdown() // which makes the descriptor ready
	}
	return unix.POLLIN // an epoll is readable when it has an event
}

func (s *secureStream) control(op, fd int, events uint32) error {
	return unix.EpollCtl(s.poll, op, fd, &unix.EpollEvent{Events: events})
}

// setReady(true) makes the descriptor ready, even if the stream below is not. setReady(false) undoes that.
func (s *secureStream) setReady(on bool) error {
	fd, err := alwaysReady()
	if err != nil {
		return err
	}
	op := unix.EPOLL_CTL_DEL
	if on {
		op = unix.EPOLL_CTL_ADD
	}
	return s.control(op, fd, unix.EPOLLIN)
}

// alwaysReady is a descriptor that is always readable.
var alwaysReady = sync.OnceValues(func() (int, error) {
	fd, err := unix.Eventfd(1, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	proc.Own(fd)
	return fd, err
})

func (s *secureStream) Shutdown() { s.wire.stream.Shutdown() }

// Close is called once.
func (s *secureStream) Close() error {
	proc.Disown(s.poll)
	return errors.Join(s.wire.stream.Close(), os.NewSyscallError("close", unix.Close(s.poll)))
}

func (s *secureStream) Diagnose() string {
	if d, ok := s.wire.stream.(transport.Diagnoser); ok {
		return d.Diagnose()
	}
	return ""
}
