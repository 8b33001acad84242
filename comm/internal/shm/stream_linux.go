package shm

import (
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/comm/internal/cpu"
)

// A stream is two rings in a segment, and a socket to whoever has the other ends of them: a byte there is a bell, its end is
// the end of the stream, also if a process is killed.
//
// Who is about to sleep says so in shared memory, and looks once more. Who has written, or read, looks whether the other sleeps.
// There is no fence between the two, which would cost more than all else: who is about to sleep has the kernel make one on
// every processor that runs a process with such streams (membarrier), before it looks.
type stream struct {
	segment *Segment
	fd      int
	in      ringReader
	out     ringWriter
	vain    int  // how often there was nothing to read, or no room
	ended   bool // the other end has gone

	mu     sync.Mutex // of Shutdown and Close
	closed bool
}

// streamSize is the bytes of a segment for rings of that size.
func streamSize(ring int) int { return pageSize + 2*ring }

// newStream makes a stream of segment and the socket fd, which it owns from now on. The ends are its maker's, and the other one's.
func newStream(segment *Segment, fd int, maker bool) (*stream, error) {
	s := &stream{segment: segment, fd: fd}
	err := s.attach(maker)
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

func (s *stream) attach(maker bool) error {
	mem := s.segment.Bytes()
	size := (len(mem) - pageSize) / 2
	if size < smallestRing || size > largestRing || size&(size-1) != 0 || len(mem) != streamSize(size) {
		return fmt.Errorf("segment of %d bytes for a stream", len(mem))
	}
	s.segment.seal()
	if err := back(mem[:pageSize]); err != nil {
		return err
	}
	ways := newWays(mem)
	mine, theirs := 0, 1
	if !maker {
		mine, theirs = 1, 0
	}
	ring := func(i int) []byte { return mem[pageSize+i*size:][:size:size] }
	s.in = ringReader{end: end{way: &ways[theirs], mem: ring(theirs)}}
	var err error
	s.out, err = newRingWriter(&ways[mine], ring(mine))
	return err
}

// TryRead implements transport.Stream.
func (s *stream) TryRead(b []byte) (int, error) {
	n, err := s.in.read(b)
	if n > 0 {
		if cpu.Load32(&s.in.way.full) != 0 {
			s.ring(&s.in.way.full)
		}
		return n, err
	}
	if err == nil && s.isOver() && len(b) > 0 {
		if n, err = s.in.read(b); n == 0 && err == nil {
			err = io.EOF
		}
	}
	return n, err
}

// TryWrite implements transport.Stream.
func (s *stream) TryWrite(v [][]byte) (int, error) {
	if s.ended {
		return 0, syscall.EPIPE
	}
	n, err := s.out.write(v)
	switch {
	case n == 0:
		s.isOver()
	case cpu.Load32(&s.out.way.hungry) != 0:
		s.ring(&s.out.way.hungry)
	}
	return n, err
}

// Put implements transport.Window.
func (s *stream) Put(a, b []byte) bool {
	if s.ended || !s.out.writeNow(a, b) {
		return false
	}
	if cpu.Load32(&s.out.way.hungry) != 0 {
		s.ring(&s.out.way.hungry)
	}
	return true
}

// Peek implements transport.Window.
func (s *stream) Peek(looks int) []byte {
	if s.in.rest == 0 {
		if ok, _ := s.in.open(looks); !ok {
			return nil
		}
	}
	return s.in.ahead()
}

// Skip implements transport.Window.
func (s *stream) Skip(n int) {
	s.in.skip(n)
	if cpu.Load32(&s.in.way.full) != 0 {
		s.ring(&s.in.way.full)
	}
}

// Descriptor implements transport.Stream.
func (s *stream) Descriptor() int { return s.fd }

// Arm implements transport.Stream.
func (s *stream) Arm(room bool) uint32 {
	s.hear()
	cpu.Store32(&s.in.way.hungry, 1)
	if room {
		cpu.Store32(&s.out.way.full, 1)
	}
	fence()
	ready := s.ended || s.in.some()
	if room && !ready {
		ok, err := s.out.room(s.out.lacked)
		ready = ok || err != nil
	}
	if ready {
		return unix.POLLIN | unix.POLLOUT // a socket always has room
	}
	return unix.POLLIN
}

// isOver says whether the other end has gone; it looks from time to time. Bells it leaves where they are, for those who sleep.
func (s *stream) isOver() bool {
	if s.vain++; s.vain%vainLooks == 0 {
		s.listen(unix.MSG_PEEK)
	}
	return s.ended
}

// hear takes bells off the socket, for Arm is to follow.
func (s *stream) hear() {
	for s.listen(0) && !s.ended {
	}
}

// listen takes in what is in the socket, and says whether that is anything. It finds out whether the socket has ended.
func (s *stream) listen(flags uintptr) bool {
	var bells [16]byte
	n, errno := takeBells(s.fd, bells[:], flags)
	if errno == unix.EAGAIN {
		return false
	}
	s.ended = s.ended || n == 0 || errno != 0 && errno != unix.EINTR
	return true
}

// ring wakes the other end, once for every time that it has raised flag.
func (s *stream) ring(flag *uint32) {
	if cpu.Swap32(flag, 0) != 0 {
		sendBell(s.fd)
	}
}

// Shutdown implements transport.Stream.
func (s *stream) Shutdown() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		_ = unix.Shutdown(s.fd, unix.SHUT_RDWR)
	}
}

// Close implements transport.Stream.
func (s *stream) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	_ = s.segment.Close() // memory of its own: nothing can be wrong
	return os.NewSyscallError("close", unix.Close(s.fd))
}

// The commands of membarrier(2).
const (
	fenceAll     = 1 << 1 // MEMBARRIER_CMD_GLOBAL_EXPEDITED
	fenceInclude = 1 << 2 // MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED
)

// joinFences lets this process have part in the fences of others. Without, it can have no streams.
var joinFences = sync.OnceValue(func() error {
	_, _, errno := unix.Syscall(unix.SYS_MEMBARRIER, fenceInclude, 0, 0)
	if errno != 0 {
		return os.NewSyscallError("membarrier", errno)
	}
	return nil
})

// fenceProcesses lets all that this thread has stored be seen by all processes that have part, and all that they have stored by it.
func fenceProcesses() { _, _, _ = syscall.RawSyscall(unix.SYS_MEMBARRIER, fenceAll, 0, 0) }

// receiveBells takes what is in the socket fd into b, without waiting.
func receiveBells(fd int, b []byte, flags uintptr) (n uintptr, errno syscall.Errno) {
	n, _, errno = syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd),
		uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_DONTWAIT|flags, 0, 0)
	return n, errno
}

// sendByte puts a byte into the socket fd, if there is room.
func sendByte(fd int) {
	bell := byte(0)
	_, _, _ = syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd),
		uintptr(unsafe.Pointer(&bell)), 1, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
}
