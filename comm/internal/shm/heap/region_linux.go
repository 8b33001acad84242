package heap

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/comm/internal/shm/segment"
)

// errNoMemory says that there is less memory than asked for.
var errNoMemory = os.NewSyscallError("madvise", unix.ENOMEM)

// newRegion makes a region of size bytes. If the kernel refuses segments, no other process can attach it.
func newRegion(size, unit int) (*region, error) {
	s, err := segment.Create(size)
	switch {
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM):
		return &region{mem: make([]byte, size), unit: unit}, nil
	case err != nil:
		return nil, err
	}
	if unit >= sharedLarge {
		segment.AdviseLarge(s.Bytes())
	}
	return &region{mem: s.Bytes(), segment: s, unit: unit}, nil
}
