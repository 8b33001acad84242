package checkpoint

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/comm/internal/shm/segment"
)

// A memory has room for the contents of a version, and of others after that. It is no memory of Go's, so that a program in C can have its
// address. It is unmapped when nothing refers to it.
//
// The memory of a part is a segment, which a partner on the same machine maps instead of receiving a copy. Only the rank writes to it, and it is
// still there when the rank has died. Its first page has a random number, by which the partner knows that it is the right segment. The rank changes
// that before it writes to the memory again.
type memory struct {
	all     []byte // for contents
	segment *segment.Segment
	theirs  bool      // the segment is another rank's
	number  [2]uint64 // of theirs, when it was mapped
	unmap   runtime.Cleanup
}

// newMemory returns a memory of size bytes. If it is mappable, partners on this machine can map it.
func newMemory(size int, mappable bool) (*memory, error) {
	m := new(memory)
	if size == 0 {
		return m, nil
	}
	all, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, fmt.Errorf("no memory for %d bytes: %w", size, os.NewSyscallError("mmap", err))
	}
	if mappable { // a segment can be made even if there is too little memory: that is known by now
		if s := createMappable(segment.PageSize + size); s != nil {
			_ = unix.Munmap(all)
			m.own(s)
			return m, nil
		}
	}
	segment.AdviseLarge(all)
	m.all = all
	m.unmap = runtime.AddCleanup(m, func(all []byte) { _ = unix.Munmap(all) }, all)
	return m, nil
}

// createMappable returns a segment of size bytes, or nil if it cannot be made, or the program needs the descriptors that are left.
func createMappable(size int) *segment.Segment {
	s, err := createSegment(size)
	if err != nil {
		return nil
	}
	if s.FD() >= descriptorLimit() {
		_ = s.Close()
		return nil
	}
	_, _ = rand.Read(s.Bytes()[:16])
	return s
}

// createSegment is a variable for tests.
var createSegment = segment.Create

// descriptorLimit returns the number below which the descriptors of segments have to be. The program has the others: its limit may be low, or it
// calls select, which takes numbers below 1024.
func descriptorLimit() int {
	limit := unix.Rlimit{Cur: 1024}
	_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
	return int(min(limit.Cur, 1024) / 2)
}

// orNew returns m, to write to it, if it is this rank's and large enough. Otherwise it frees m, and returns new memory.
func (m *memory) orNew(size int, mappable bool) (*memory, error) {
	if m != nil && !m.theirs && len(m.all) >= size {
		if m.segment != nil {
			n := numberOf(m.segment)
			binary.NativeEndian.PutUint64(m.segment.Bytes(), n[0]+1)
		}
		return m, nil
	}
	made, err := newMemory(size, mappable)
	if err == nil {
		m.free()
	}
	return made, err
}

// own makes s the memory, which unmaps it in the end.
func (m *memory) own(s *segment.Segment) {
	m.segment, m.all = s, s.Bytes()[segment.PageSize:]
	m.unmap = runtime.AddCleanup(m, func(s *segment.Segment) { _ = s.Close() }, s)
}

// free unmaps m at once. Otherwise a state that grows with each commit would take many times its size: it makes little garbage, so Go rarely
// collects that.
func (m *memory) free() {
	if m == nil || m.all == nil {
		return
	}
	m.unmap.Stop()
	if m.segment != nil {
		_ = m.segment.Close()
	} else {
		_ = unix.Munmap(m.all)
	}
	m.all = nil
}

// A place is where a process of the same machine finds a memory. The zero place is none.
type place struct {
	PID, FD, Size uint64
	Number        [2]uint64
}

// place returns where others find m.
func (m *memory) place() place {
	if m.segment == nil || m.theirs {
		return place{}
	}
	p := place{PID: uint64(os.Getpid()), FD: uint64(m.segment.FD()), Size: uint64(len(m.segment.Bytes()))}
	p.Number = numberOf(m.segment)
	return p
}

// overwritten reports whether another rank, whose memory this is, has written to it since this process mapped it, or is about to.
func (m *memory) overwritten() bool { return m.theirs && numberOf(m.segment) != m.number }

func numberOf(s *segment.Segment) (n [2]uint64) {
	for i := range n {
		n[i] = binary.NativeEndian.Uint64(s.Bytes()[8*i:])
	}
	return n
}

// open returns the memory of another rank, which has room for size bytes, or nil if this process cannot map it: then it gets a copy.
func (p place) open(size int) *memory {
	path := fmt.Sprintf("/proc/%d/fd/%d", p.PID, p.FD)
	if name, err := os.Readlink(path); err != nil || name != segmentLink || p.Size < uint64(segment.PageSize+size) {
		return nil
	}
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	s, err := segment.Open(fd, int(p.Size))
	if err != nil {
		return nil
	}
	s.CloseFD()
	if numberOf(s) != p.Number { // the rank is on another machine, or in another container
		_ = s.Close()
		return nil
	}
	m := &memory{theirs: true, number: p.Number}
	m.own(s)
	return m
}

// segmentLink is what /proc says that a segment is.
const segmentLink = "/memfd:gorun (deleted)"
