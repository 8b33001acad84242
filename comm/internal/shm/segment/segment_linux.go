package segment

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/env/proc"
)

// A Segment is memory that processes share.
type Segment struct {
	fd  int
	mem []byte
}

// With these seals no process that has the segment can change its size, so no access to it can fail.
const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL

// Create makes a segment of size zero bytes. The kernel allocates memory for it only when it is written to; see [Populate].
func Create(size int) (*Segment, error) { return CreateNamed("gorun", size) }

// CreateNamed is Create with a name, which /proc/PID/maps has.
func CreateNamed(name string, size int) (*Segment, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	if err := retry(func() error { return unix.Ftruncate(fd, int64(size)) }); err != nil {
		return nil, errors.Join(os.NewSyscallError("ftruncate", err), unix.Close(fd))
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		return nil, errors.Join(os.NewSyscallError("fcntl", err), unix.Close(fd))
	}
	return Open(fd, size)
}

// Open maps fd, which another process may have made, as a segment of size bytes. The segment owns fd from now on, even if Open fails.
func Open(fd, size int) (*Segment, error) {
	proc.Own(fd)
	s := &Segment{fd: fd}
	err := s.check(size)
	if err == nil {
		err = s.mapAligned(size)
	}
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// check makes sure that the file behind s has size bytes and keeps them.
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

// mapAligned maps s, which has size bytes, at a multiple of LargePage. It reserves more addresses than it needs, maps s in their middle,
// and unmaps the rest.
func (s *Segment) mapAligned(size int) error {
	reserved := uintptr(size) + LargePage
	start, err := unix.MmapPtr(-1, 0, nil, reserved, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return fmt.Errorf("%d bytes: %w", size, os.NewSyscallError("mmap", err))
	}
	before := -uintptr(start) % LargePage
	mem, err := unix.MmapPtr(s.fd, 0, unsafe.Add(start, before), uintptr(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_FIXED)
	if err != nil {
		return errors.Join(fmt.Errorf("%d bytes: %w", size, os.NewSyscallError("mmap", err)), unix.MunmapPtr(start, reserved))
	}
	s.mem = unsafe.Slice((*byte)(mem), size)
	var errs []error
	if before > 0 {
		errs = append(errs, unix.MunmapPtr(start, before))
	}
	if end := before + uintptr(WholePages(size)); end < reserved {
		errs = append(errs, unix.MunmapPtr(unsafe.Add(start, end), reserved-end))
	}
	return os.NewSyscallError("munmap", errors.Join(errs...))
}

// Populate makes the kernel allocate memory for mem, whole pages of a segment. Without it, a process that writes to a page when there is
// no memory left is killed.
func Populate(mem []byte) error {
	err := retry(func() error { return unix.Madvise(mem, unix.MADV_POPULATE_WRITE) })
	if errors.Is(err, unix.EINVAL) { // a kernel before 5.14
		return nil
	}
	return os.NewSyscallError("madvise", err)
}

// AdviseLarge asks the kernel for large pages in mem. It does not matter if there are none.
func AdviseLarge(mem []byte) {
	if len(mem) >= LargePage {
		_ = unix.Madvise(mem, unix.MADV_HUGEPAGE)
	}
}

// PopulateLarge makes the kernel allocate large pages for mem as far as possible, even if it gives shared memory none by itself. It makes
// a large page of small ones, at least one of which must be populated. That takes a tenth of the time of populating all small pages.
func PopulateLarge(mem []byte) {
	for ; len(mem) > 0; mem = mem[LargePage:] {
		if Populate(mem[:os.Getpagesize()]) != nil || unix.Madvise(mem[:LargePage], unix.MADV_COLLAPSE) != nil {
			return
		}
	}
}

// Punch frees the memory of n bytes of s, which are zero after that.
func (s *Segment) Punch(from, n int) error {
	if s == nil {
		return errors.ErrUnsupported
	}
	return retry(func() error {
		return unix.Fallocate(s.fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, int64(from), int64(n))
	})
}

// Replace makes s the segment that by is, which has the same size, at the addresses of s: there is always memory. What s was before is
// unmapped, and by is used no more.
func (s *Segment) Replace(by *Segment) error {
	from, to, size := unsafe.Pointer(unsafe.SliceData(by.mem)), unsafe.Pointer(unsafe.SliceData(s.mem)), uintptr(WholePages(len(s.mem)))
	if _, err := unix.MremapPtr(from, size, to, size, unix.MREMAP_MAYMOVE|unix.MREMAP_FIXED); err != nil {
		return os.NewSyscallError("mremap", err)
	}
	s.CloseFD()
	s.fd, by.fd, by.mem = by.fd, -1, nil
	return nil
}

// Bytes returns the memory, until Close.
func (s *Segment) Bytes() []byte { return s.mem }

// FD returns the descriptor, until CloseFD.
func (s *Segment) FD() int { return s.fd }

// CloseFD closes the descriptor. The memory stays mapped, but the segment can be passed to no further process.
func (s *Segment) CloseFD() {
	if s.fd >= 0 {
		_ = unix.Close(s.fd)
		s.fd = -1
	}
}

// Close unmaps the segment, if s is not nil. After that Bytes may not be used.
func (s *Segment) Close() error {
	if s == nil {
		return nil
	}
	s.CloseFD()
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
