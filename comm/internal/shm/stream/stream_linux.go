package stream

import (
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/comm/internal/cpu"
	"github.com/gorun/gorun/comm/internal/shm/segment"
)

// A Stream is two rings in a segment, and a socket to the process that has their other ends. A byte in the socket is a doorbell. The
// stream ends when the socket ends, so it also ends when a process is killed.
//
// An end that is about to sleep says so in shared memory, and checks the rings once more. An end that has written, or read, checks whether
// the other one sleeps. It makes no fence in between, because that would cost more than all else. Instead, before the end that is about to
// sleep checks the rings, it makes the kernel run a fence on every processor that runs a process with streams (membarrier).
type Stream struct {
	segment *segment.Segment
	fd      int
	in      ringReader
	out     ringWriter
	polls   int  // unsuccessful ones: there was nothing to read, or no space
	ended   bool // the other end has gone

	mu     sync.Mutex // of Shutdown and Close
	closed bool
}

// segmentSize is the bytes of a segment for rings of that size.
func segmentSize(ring int) int { return segment.PageSize + 2*ring }

// Name is the name of the memory of a stream in /proc.
const Name = "gorun-stream"

// Create makes the memory of a stream. So many ranks share the machine.
func Create(ranks int) (*segment.Segment, error) {
	return segment.CreateNamed(Name, segmentSize(ringSize(ranks)))
}

// attach makes s an end of a stream of its memory.
func (s *Stream) attach(creator bool) error {
	mem := s.segment.Bytes()
	size := (len(mem) - segment.PageSize) / 2
	if size < smallestRing || size > largestRing || size&(size-1) != 0 || len(mem) != segmentSize(size) {
		return fmt.Errorf("segment of %d bytes for a stream", len(mem))
	}
	s.segment.CloseFD()
	if err := segment.Populate(mem[:segment.PageSize]); err != nil {
		return err
	}
	headers := newHeaders(mem)
	mine, theirs := 0, 1
	if !creator {
		mine, theirs = 1, 0
	}
	ring := func(i int) []byte { return mem[segment.PageSize+i*size:][:size:size] }
	s.in = ringReader{end: end{header: &headers[theirs], mem: ring(theirs)}}
	var err error
	s.out, err = newRingWriter(&headers[mine], ring(mine))
	return err
}

// TryRead implements transport.Stream.
func (s *Stream) TryRead(b []byte) (int, error) {
	n, err := s.in.read(b)
	if n > 0 {
		if cpu.Load32(&s.in.header.writerSleeps) != 0 {
			s.ring(&s.in.header.writerSleeps)
		}
		return n, err
	}
	if err == nil && s.peerGone() && len(b) > 0 {
		if n, err = s.in.read(b); n == 0 && err == nil {
			err = io.EOF
		}
	}
	return n, err
}

// TryWrite implements transport.Stream.
func (s *Stream) TryWrite(v [][]byte) (int, error) {
	if s.ended {
		return 0, syscall.EPIPE
	}
	n, err := s.out.write(v)
	switch {
	case n == 0:
		s.peerGone()
	case cpu.Load32(&s.out.header.readerSleeps) != 0:
		s.ring(&s.out.header.readerSleeps)
	}
	return n, err
}

// Put implements transport.MemoryStream.
func (s *Stream) Put(a, b []byte) bool {
	if s.ended || !s.out.writeNow(a, b) {
		return false
	}
	if cpu.Load32(&s.out.header.readerSleeps) != 0 {
		s.ring(&s.out.header.readerSleeps)
	}
	return true
}

// Peek implements transport.MemoryStream.
func (s *Stream) Peek(polls int) []byte {
	if s.in.rest == 0 {
		if ok, _ := s.in.open(polls); !ok {
			return nil
		}
	}
	return s.in.ahead()
}

// Skip implements transport.MemoryStream.
func (s *Stream) Skip(n int) {
	s.in.skip(n)
	if cpu.Load32(&s.in.header.writerSleeps) != 0 {
		s.ring(&s.in.header.writerSleeps)
	}
}

// Descriptor implements transport.Stream.
func (s *Stream) Descriptor() int { return s.fd }

// Arm implements transport.Stream.
func (s *Stream) Arm(writable bool) uint32 {
	s.clearDoorbells()
	cpu.Store32(&s.in.header.readerSleeps, 1)
	if writable {
		cpu.Store32(&s.out.header.writerSleeps, 1)
	}
	fence()
	ready := s.ended || s.in.isReadable()
	if writable && !ready {
		ok, err := s.out.reserve(s.out.lacked)
		ready = ok || err != nil
	}
	if ready {
		return unix.POLLIN | unix.POLLOUT // the socket is always writable
	}
	return unix.POLLIN
}

// peerGone reports whether the other end has gone. It checks the socket only from time to time, and leaves doorbells there.
func (s *Stream) peerGone() bool {
	if s.polls++; s.polls%pollsPerCheck == 0 {
		s.receive(unix.MSG_PEEK)
	}
	return s.ended
}

// clearDoorbells reads all doorbells from the socket. The caller must check the rings afterwards.
func (s *Stream) clearDoorbells() {
	for s.receive(0) && !s.ended {
	}
}

// receive reads doorbells from the socket, and reports whether there were any. It notices the end of the socket.
func (s *Stream) receive(flags uintptr) bool {
	var bells [16]byte
	n, errno := receiveDoorbells(s.fd, bells[:], flags)
	if errno == unix.EAGAIN {
		return false
	}
	s.ended = s.ended || n == 0 || errno != 0 && errno != unix.EINTR
	return true
}

// ring wakes the other end, once for every time that it has set flag.
func (s *Stream) ring(flag *uint32) {
	if cpu.Swap32(flag, 0) != 0 {
		sendDoorbell(s.fd)
	}
}

// Shutdown implements transport.Stream.
func (s *Stream) Shutdown() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		_ = unix.Shutdown(s.fd, unix.SHUT_RDWR)
	}
}

// Close implements transport.Stream.
func (s *Stream) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	_ = s.segment.Close() // cannot fail: the mapping is this stream's own
	return os.NewSyscallError("close", unix.Close(s.fd))
}

// The commands of membarrier(2).
const (
	fenceAll     = 1 << 1 // MEMBARRIER_CMD_GLOBAL_EXPEDITED
	fenceInclude = 1 << 2 // MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED
)

// RegisterFences makes the fences of other processes include this one. Without it a process can have no streams.
var RegisterFences = sync.OnceValue(func() error {
	_, _, errno := unix.Syscall(unix.SYS_MEMBARRIER, fenceInclude, 0, 0)
	if errno != 0 {
		return os.NewSyscallError("membarrier", errno)
	}
	return nil
})

// fenceProcesses makes a fence in this thread, and in every registered process.
func fenceProcesses() { _, _, _ = syscall.RawSyscall(unix.SYS_MEMBARRIER, fenceAll, 0, 0) }

// receive reads from the socket fd into b, without waiting.
func receive(fd int, b []byte, flags uintptr) (n uintptr, errno syscall.Errno) {
	n, _, errno = syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd),
		uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_DONTWAIT|flags, 0, 0)
	return n, errno
}

// sendByte writes a byte to the socket fd, if there is space.
func sendByte(fd int) {
	bell := byte(0)
	_, _, _ = syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd),
		uintptr(unsafe.Pointer(&bell)), 1, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
}
