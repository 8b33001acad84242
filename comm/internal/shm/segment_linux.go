package shm

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Segment is memory that processes share.
type Segment struct {
	fd  int
	mem []byte
}

// seals keep whoever has the segment from changing its size, so that no access to it can fail.
const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL

// Create makes a segment of size bytes, all zero. It takes memory only when it is written to; see [back].
func Create(size int) (*Segment, error) { return create("gorun", size) }

// create is Create of one that is called so where a process's memory is listed.
func create(name string, size int) (*Segment, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	s := &Segment{fd: fd}
	if err := s.reserve(size); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Segment) reserve(size int) error {
	if err := retry(func() error { return unix.Ftruncate(s.fd, int64(size)) }); err != nil {
		return os.NewSyscallError("ftruncate", err)
	}
	if _, err := unix.FcntlInt(uintptr(s.fd), unix.F_ADD_SEALS, seals); err != nil {
		return os.NewSyscallError("fcntl", err)
	}
	return s.mapIt(size)
}

// open takes over fd, which another process has made, as a segment of size bytes.
func open(fd, size int) (*Segment, error) {
	s := &Segment{fd: fd}
	err := s.check(size)
	if err == nil {
		err = s.mapIt(size)
	}
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// check makes sure that the file behind s is and stays as long as said.
func (s *Segment) check(size int) error {
	got, err := unix.FcntlInt(uintptr(s.fd), unix.F_GET_SEALS, 0)
	if err != nil {
		return os.NewSyscallError("fcntl", err)
	}
	if got&seals != seals {
		return errors.New("its size could be changed")
	}
	var st unix.Stat_t
	if err := unix.Fstat(s.fd, &st); err != nil {
		return os.NewSyscallError("fstat", err)
	}
	if st.Size != int64(size) {
		return fmt.Errorf("has %d bytes: want %d", st.Size, size)
	}
	return nil
}

// mapIt maps s, which has size bytes, at an address where large pages fit: in the midst of more addresses than it takes.
func (s *Segment) mapIt(size int) error {
	room := uintptr(size) + largePage
	start, err := unix.MmapPtr(-1, 0, nil, room, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return fmt.Errorf("%d bytes: %w", size, os.NewSyscallError("mmap", err))
	}
	before := -uintptr(start) % largePage
	mem, err := unix.MmapPtr(s.fd, 0, unsafe.Add(start, before), uintptr(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_FIXED)
	if err != nil {
		return errors.Join(fmt.Errorf("%d bytes: %w", size, os.NewSyscallError("mmap", err)), unix.MunmapPtr(start, room))
	}
	s.mem = unsafe.Slice((*byte)(mem), size)
	var errs []error
	if before > 0 {
		errs = append(errs, unix.MunmapPtr(start, before))
	}
	if end := (before + uintptr(size) + pageSize - 1) / pageSize * pageSize; end < room {
		errs = append(errs, unix.MunmapPtr(unsafe.Add(start, end), room-end))
	}
	return os.NewSyscallError("munmap", errors.Join(errs...))
}

// back makes sure that there is memory behind mem, part of a segment, which is whole pages. Whoever writes where there is none
// left is killed.
func back(mem []byte) error {
	err := retry(func() error { return unix.Madvise(mem, unix.MADV_POPULATE_WRITE) })
	if errors.Is(err, unix.EINVAL) { // a kernel before 5.14
		return nil
	}
	return os.NewSyscallError("madvise", err)
}

// Bytes is the memory, until Close.
func (s *Segment) Bytes() []byte { return s.mem }

// seal closes the descriptor: who has not got the segment by now will not.
func (s *Segment) seal() {
	if s.fd >= 0 {
		_ = unix.Close(s.fd)
		s.fd = -1
	}
}

// Close lets go of the segment, if there is one. Nobody may use Bytes any more.
func (s *Segment) Close() error {
	if s == nil {
		return nil
	}
	s.seal()
	mem := s.mem
	s.mem = nil
	if mem == nil {
		return nil
	}
	return os.NewSyscallError("munmap", unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(mem)), uintptr(len(mem))))
}

func retry(f func() error) error {
	for {
		if err := f(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
