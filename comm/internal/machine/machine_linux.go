package machine

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Here returns where this process runs.
func Here() (Place, error) {
	boot, bootErr := os.ReadFile("/proc/sys/kernel/random/boot_id")
	network, networkErr := os.Readlink("/proc/self/ns/net")
	processes, processesErr := os.Readlink("/proc/self/ns/pid")
	if err := errors.Join(bootErr, networkErr, processesErr); err != nil {
		return Place{}, err
	}
	return Place{Kernel: strings.TrimSpace(string(boot)), Network: network, Processes: processes}, nil
}

// HasProc reports whether /proc lists processes by the numbers of this process's namespace.
func HasProc() bool {
	self, err := os.Readlink("/proc/self")
	return err == nil && self == strconv.Itoa(os.Getpid())
}

// AwaitExit waits until the process pid has ended, at most for limit. It reports whether the process has ended, and
// whether that can be known. When it returns, the kernel has notified the process's parent. So if this process exits
// because of the other one, its own parent hears of that later.
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

// ProcessState says why the process pid does not run. It is empty if nothing keeps the process from running.
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
