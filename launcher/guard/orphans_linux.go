package guard

import (
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/env/proc"
)

// guards are this process's guards, by pid, with their purposes. While there is a guard for a gang, this process is a
// subreaper: if the guard is killed, the agent adopts everything that it guarded.
var guards = struct {
	sync.Mutex
	pids map[int]purpose
}{pids: map[int]purpose{}}

// A purpose is what a guard is for.
type purpose int

const (
	forGang purpose = iota
	forDirectory
)

// enlist starts a guard with start, and adds it to guards before anybody else can look.
func enlist(what purpose, start func() (*os.Process, error)) (*os.Process, error) {
	guards.Lock()
	defer guards.Unlock()
	if what == forGang {
		if err := setSubreaper(true); err != nil {
			return nil, err
		}
	}
	guard, err := start()
	if err == nil {
		guards.pids[guard.Pid] = what
	}
	updateSubreaper()
	return guard, err
}

// forget removes a guard after its end has been waited for.
func forget(pid int) {
	guards.Lock()
	defer guards.Unlock()
	delete(guards.pids, pid)
	updateSubreaper()
}

// updateSubreaper is called with guards locked when their number has changed.
func updateSubreaper() {
	gangs := 0
	for _, what := range guards.pids {
		if what == forGang {
			gangs++
		}
	}
	_ = setSubreaper(gangs > 0) // it did not fail before
}

func setSubreaper(on bool) error {
	var arg uintptr
	if on {
		arg = 1
	}
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, arg, 0, 0, 0)
}

// noGuard is a pid that no process has.
const noGuard = -1

// killOrphans kills and reaps what a guard that died, or must die, leaves to this process. since is the guard's start in clock ticks,
// and guard is its pid while it lives. It returns when nothing is left but processes that it may not kill, because they belong to
// another user, and those that are stuck.
func killOrphans(since uint64, guard int, until time.Time) (denied, stuck []int) {
	for {
		tree := orphans(since, guard)
		_, denied = proc.KillAll(tree)
		reaped := 0
		for _, p := range tree {
			if p.Parent == os.Getpid() && !slices.Contains(denied, p.Pid) && awaitEnd(p.Pid, until) && proc.Reap(p.Pid) {
				reaped++
			}
		}
		if reaped > 0 {
			continue
		}
		for _, p := range orphans(since, guard) {
			if !p.Zombie && !slices.Contains(denied, p.Pid) {
				stuck = append(stuck, p.Pid)
			}
		}
		return denied, stuck
	}
}

// awaitEnd waits for the end of a child, and reports whether it ended in time.
func awaitEnd(pid int, until time.Time) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil { // before Linux 5.3, or it has been reaped
		for p, ok := proc.Read(pid); ok && !p.Zombie; p, ok = proc.Read(pid) {
			if time.Now().After(until) {
				return false
			}
			time.Sleep(10 * time.Millisecond)
		}
		return true
	}
	defer func() { _ = unix.Close(fd) }()
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, max(0, int(time.Until(until).Milliseconds())))
		if !errors.Is(err, unix.EINTR) {
			return n > 0
		}
	}
}

// orphans returns the children of this process that it adopted, or will adopt, from a dead guard, and all processes
// below them. Such a child is younger than the guard and in another session than the agent: the guard leads a session of
// its own, in which its workers start, and no process can return to a session that it has left. What this process starts itself is in its own
// session, except the guards of its other gangs.
func orphans(since uint64, guard int) []proc.Process {
	guards.Lock()
	defer guards.Unlock()
	self, ok := proc.Read(os.Getpid())
	if !ok {
		return nil
	}
	return proc.Descendants(proc.All(), func(p proc.Process) bool {
		return p.Parent == guard || p.Parent == self.Pid && p.Session != self.Session && p.StartTicks >= since && !isGuard(p.Pid)
	})
}

// isGuard is called with guards locked.
func isGuard(pid int) bool {
	_, ok := guards.pids[pid]
	return ok
}
