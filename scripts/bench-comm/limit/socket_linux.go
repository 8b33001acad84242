package limit

import (
	"errors"

	"golang.org/x/sys/unix"
)

// tune sets the options that package comm sets: no Nagle's algorithm, and no BBR, which limits the rate on a network without congestion, too.
func tune(fd int) error {
	err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	if name, failed := unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION); failed == nil && name == "bbr" {
		if unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, "cubic") != nil {
			err = errors.Join(err, unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, "reno"))
		}
	}
	return err
}

// yield lets another thread have the processor.
func yield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
