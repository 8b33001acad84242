package comm

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/comm/internal/endpoint"
)

// awaitExit waits until the process pid has ended, at most for limit. It returns when the kernel has told the
// process's parent as well, so that whoever dies of this death is reported after it.
func awaitExit(pid int, limit time.Duration) endpoint.Fate {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return endpoint.Dead
	}
	if err != nil {
		return endpoint.Unknown
	}
	defer func() { _ = unix.Close(fd) }()
	for deadline := time.Now().Add(limit); ; {
		left := max(time.Until(deadline), 0)
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(left.Milliseconds()))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return endpoint.Unknown
		case n > 0:
			return endpoint.Dead
		case left == 0:
			return endpoint.Alive
		}
	}
}
