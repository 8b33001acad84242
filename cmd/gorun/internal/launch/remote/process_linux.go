package remote

import (
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/env/proc"
)

// executable is the file of this program, even if it has been replaced or removed.
func executable() (string, error) { return "/proc/self/exe", nil }

// attributes put gorun in a process group of its own, and kill it if this process dies.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// adopt makes this process the parent of what a gorun that dies leaves: its guard, and the workers.
func adopt() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("cannot become a subreaper: %w", err)
	}
	return nil
}

// leftTimeout is how long the guard of a gorun that has died may take to end the workers, and how long they may then take to end.
const leftTimeout = 2 * time.Second

// endLeft ends what a gorun that has died has left. Its guard does that at once, unless it is frozen.
func endLeft() {
	const pause = 10 * time.Millisecond
	for until := time.Now().Add(leftTimeout); len(left()) > 0 && time.Now().Before(until); time.Sleep(pause) {
	}
	for until := time.Now().Add(leftTimeout); time.Now().Before(until); time.Sleep(pause) {
		list := left()
		if len(list) == 0 {
			return
		}
		proc.KillAll(list) // those of another user stay
	}
}

// left returns the processes below this one. gorun has ended.
func left() []proc.Process {
	list := proc.Descendants(proc.All(), func(p proc.Process) bool { return p.Parent == os.Getpid() })
	return slices.DeleteFunc(list, func(p proc.Process) bool { return p.Zombie })
}
