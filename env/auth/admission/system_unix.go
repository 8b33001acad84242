//go:build unix

package admission

import (
	"errors"
	"syscall"
)

// mostDescriptors returns how many descriptors this process may have. The Go runtime has raised the soft limit to the hard limit;
// child processes get the old soft limit.
func mostDescriptors() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 256 // what any system allows
	}
	return int(min(limit.Cur, 1<<20))
}

// peek reports whether there is something to read. gone means that there never will be.
func peek(fd int) (speaks, gone bool) {
	var b [1]byte
	for {
		n, _, err := syscall.Recvfrom(fd, b[:], syscall.MSG_PEEK)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EAGAIN):
			return false, false
		default:
			return err == nil && n > 0, err != nil || n == 0
		}
	}
}
