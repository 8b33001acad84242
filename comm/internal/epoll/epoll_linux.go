package epoll

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/env/proc"
)

// A Set is a set of descriptors, for each of which the caller chooses an identifier. As long as a descriptor is in a set, sending to it
// costs more, even if nobody waits for it.
type Set struct {
	fd       int
	file     *os.File // fd, as the runtime waits for it
	raw      syscall.RawConn
	events   [64]unix.EpollEvent
	ready    []int
	err      error
	poll     func(fd uintptr) bool // collect
	pollOnce func(fd uintptr) bool // collect, which then does not wait
}

// New returns an empty set.
func New() (*Set, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // or the runtime would not wait for it
		_ = unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	proc.Own(fd)
	s := &Set{fd: fd, file: os.NewFile(uintptr(fd), "epoll")}
	if s.raw, err = s.file.SyscallConn(); err != nil {
		_ = s.Close()
		return nil, err
	}
	s.poll = s.collect
	s.pollOnce = func(fd uintptr) bool { s.collect(fd); return true }
	return s, nil
}

// Add adds descriptor fd with identifier id. Wait or Ready returns id once, when one of events (of poll(2)) has happened, or fd has
// failed or ended. A descriptor that is closed leaves the set.
func (s *Set) Add(fd, id int, events uint32) error {
	return s.control(unix.EPOLL_CTL_ADD, fd, id, events)
}

// Change is Add for a descriptor that is in the set.
func (s *Set) Change(fd, id int, events uint32) error {
	return s.control(unix.EPOLL_CTL_MOD, fd, id, events)
}

// Remove removes fd from the set.
func (s *Set) Remove(fd int) error { return s.control(unix.EPOLL_CTL_DEL, fd, 0, 0) }

func (s *Set) control(op, fd, id int, events uint32) error {
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(s.fd, op, fd, &unix.EpollEvent{Events: events | unix.EPOLLONESHOT, Fd: int32(id)}))
}

// Wait waits until descriptors become ready, and returns their identifiers. The slice is valid until the next Wait or Ready.
func (s *Set) Wait() ([]int, error) { return s.read(s.poll) }

// Ready is Wait that returns at once.
func (s *Set) Ready() ([]int, error) { return s.read(s.pollOnce) }

func (s *Set) read(poll func(fd uintptr) bool) ([]int, error) {
	s.ready, s.err = s.ready[:0], nil
	if err := s.raw.Read(poll); err != nil {
		return nil, os.ErrClosed
	}
	return s.ready, s.err
}

// collect collects the descriptors that are ready, and reports whether the wait is over.
func (s *Set) collect(uintptr) bool {
	n, err := unix.EpollWait(s.fd, s.events[:], 0) // does not block, so no signal interrupts it
	if err != nil {
		s.err = os.NewSyscallError("epoll_wait", err)
		return true
	}
	for _, event := range s.events[:n] {
		s.ready = append(s.ready, int(event.Fd))
	}
	return n > 0
}

// Close closes the set, and ends Wait.
func (s *Set) Close() error {
	proc.Disown(s.fd)
	return s.file.Close()
}
