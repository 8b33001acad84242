package shm

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// errNoMemory says that there is less memory than asked for.
var errNoMemory = os.NewSyscallError("madvise", unix.ENOMEM)

// newArea makes an area of size bytes, or where there are no segments one that is the process's own.
func newArea(size, unit int) (*area, error) {
	s, err := Create(size)
	switch {
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM):
		return &area{mem: make([]byte, size), unit: unit}, nil
	case err != nil:
		return nil, err
	}
	if unit >= sharedLarge {
		wantLargePages(s.mem)
	}
	return &area{mem: s.mem, segment: s, unit: unit}, nil
}

// wantLargePages asks for large pages where mem has none yet. It does with small ones, too.
func wantLargePages(mem []byte) {
	if len(mem) >= largePage {
		_ = unix.Madvise(mem, unix.MADV_HUGEPAGE)
	}
}

// backLarge puts large pages behind mem as far as it can, also where the system gives shared memory none by itself: it makes them
// of small ones, of which there has to be one. That takes a tenth of the time that all the small ones would.
func backLarge(mem []byte) {
	for ; len(mem) > 0; mem = mem[largePage:] {
		if back(mem[:os.Getpagesize()]) != nil || unix.Madvise(mem[:largePage], unix.MADV_COLLAPSE) != nil {
			return
		}
	}
}

// punch gives the memory behind n bytes of s back; they are zero then.
func (s *Segment) punch(from, n int) error {
	if s == nil {
		return errors.ErrUnsupported
	}
	return retry(func() error {
		return unix.Fallocate(s.fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, int64(from), int64(n))
	})
}
