package tcp

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/env/proc"
)

// socket returns a stream over a duplicate of c's socket. c may then be closed.
func socket(c *net.TCPConn) (*stream, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	s := &stream{coalesceLimit: coalesceLimit(c)}
	if controlErr := raw.Control(func(fd uintptr) {
		s.fd, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0)
	}); controlErr != nil {
		return nil, controlErr
	}
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	proc.Own(s.fd)
	return s, nil
}

const (
	// mostBuffers is the most buffers that one system call writes.
	mostBuffers = 16
	// mostCopied is the most bytes that are copied into one buffer, which then costs less than a vectored write.
	mostCopied = 4 << 10
)

// A stream implements transport.Coalescer over a socket. Its system calls never block, so it makes them without the Go
// scheduler (RawSyscall), which halves their cost.
type stream struct {
	fd     int
	copied [mostCopied]byte // the buffers of a short write, one after the other
	vec    [mostBuffers]unix.Iovec
	msg    unix.Msghdr

	coalesceLimit int

	mu     sync.Mutex // of Shutdown and Close
	closed bool
}

func (s *stream) TryRead(b []byte) (int, error) {
	n, _, errno := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(s.fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), unix.MSG_DONTWAIT, 0, 0)
	switch {
	case errno == unix.EAGAIN || errno == unix.EINTR:
		return 0, nil
	case errno != 0:
		return 0, os.NewSyscallError("recv", errno)
	case n == 0 && len(b) > 0:
		return 0, io.EOF
	}
	return int(n), nil
}

func (s *stream) TryWrite(v [][]byte) (int, error) {
	n := 0
	for _, b := range v {
		if n += len(b); n > mostCopied {
			return s.writeVector(v)
		}
	}
	n = 0
	for _, b := range v {
		n += copy(s.copied[n:], b)
	}
	return written(syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(s.fd),
		uintptr(unsafe.Pointer(&s.copied[0])), uintptr(n), sendFlags, 0, 0))
}

func (s *stream) writeVector(v [][]byte) (int, error) {
	count := min(len(v), mostBuffers)
	for i, b := range v[:count] {
		s.vec[i].Base = unsafe.SliceData(b)
		s.vec[i].SetLen(len(b))
	}
	s.msg.Iov = &s.vec[0]
	s.msg.SetIovlen(count)
	defer clear(s.vec[:count]) // do not keep the caller's memory alive
	return written(syscall.RawSyscall(unix.SYS_SENDMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&s.msg)), sendFlags))
}

const sendFlags = unix.MSG_DONTWAIT | unix.MSG_NOSIGNAL

// written is the result of a system call that writes.
func written(n, _ uintptr, errno syscall.Errno) (int, error) {
	switch {
	case errno == unix.EAGAIN || errno == unix.EINTR:
		return 0, nil
	case errno != 0:
		return 0, os.NewSyscallError("send", errno)
	}
	return int(n), nil
}

func (s *stream) Descriptor() int { return s.fd }

// Coalesce implements transport.Coalescer.
func (s *stream) Coalesce(on bool) {
	noDelay := 1
	if on {
		noDelay = 0
	}
	_ = unix.SetsockoptInt(s.fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, noDelay)
}

// CoalesceLimit implements transport.Coalescer.
func (s *stream) CoalesceLimit() int { return s.coalesceLimit }

// Acknowledge implements transport.Coalescer.
func (s *stream) Acknowledge() { _ = unix.SetsockoptInt(s.fd, unix.IPPROTO_TCP, unix.TCP_QUICKACK, 1) }

func (s *stream) Arm(writable bool) uint32 {
	s.Acknowledge() // the other side may hold back what this rank waits for until it is acknowledged
	if writable {
		return unix.POLLIN | unix.POLLOUT
	}
	return unix.POLLIN
}

func (s *stream) Shutdown() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		_ = unix.Shutdown(s.fd, unix.SHUT_RDWR)
	}
}

func (s *stream) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	return os.NewSyscallError("close", unix.Close(s.fd))
}
