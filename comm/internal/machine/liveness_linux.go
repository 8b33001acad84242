package machine

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// AwaitExit waits until the process pid has ended, at most for limit, and reports whether it has, and whether that can be known. It
// returns when the kernel has told the process's parent as well, so that whoever dies of this death is reported after it.
func AwaitExit(pid int, limit time.Duration) (ended, known bool) {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return true, true
	}
	if err != nil {
		return false, false
	}
	defer func() { _ = unix.Close(fd) }()
	for deadline := time.Now().Add(limit); ; {
		left := max(time.Until(deadline), 0)
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(left.Milliseconds()))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return false, false
		case n > 0:
			return true, true
		case left == 0:
			return false, true
		}
	}
}

// ProcessState says what the process pid does, or nothing if that does not explain why it is silent.
func ProcessState(pid int) string {
	if !HasProc() {
		return ""
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(text), ") ") // after the program's name
	switch state, _, _ := strings.Cut(rest, " "); state {
	case "T":
		return "its process has been stopped by a signal"
	case "t":
		return "its process has been stopped by a debugger"
	case "D":
		return "its process waits for a disk or a device"
	}
	return ""
}
