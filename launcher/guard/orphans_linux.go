package guard

import (
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/launcher/proc"
)

// guards are the guards that this process has. While there is one, the process is a subreaper: should the
// guard be killed, all it guarded becomes the agent's.
var guards = struct {
	sync.Mutex
	pids map[int]bool
}{pids: map[int]bool{}}

// enlist starts a guard with start, and takes it on the list before anybody else looks at it.
func enlist(start func() (*os.Process, error)) (*os.Process, error) {
	guards.Lock()
	defer guards.Unlock()
	if err := setSubreaper(true); err != nil {
		return nil, err
	}
	guard, err := start()
	if err == nil {
		guards.pids[guard.Pid] = true
	}
	_ = setSubreaper(len(guards.pids) > 0) // it did not fail above
	return guard, err
}

// forget is called after the guard's end has been waited for.
func forget(pid int) {
	guards.Lock()
	defer guards.Unlock()
	delete(guards.pids, pid)
	_ = setSubreaper(len(guards.pids) > 0)
}

func setSubreaper(on bool) error {
	var arg uintptr
	if on {
		arg = 1
	}
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, arg, 0, 0, 0)
}

// killOrphans kills and reaps what a guard that died has left to this process; since is the guard's start in
// clock ticks. It returns when nothing is left but the pids returned, which are another user's.
func killOrphans(since uint64) (denied []int) {
	for {
		tree := orphans(since)
		_, denied = proc.KillAll(tree)
		reaped := 0
		for _, p := range tree {
			if p.Parent == os.Getpid() && !slices.Contains(denied, p.Pid) {
				proc.Reap(p.Pid)
				reaped++
			}
		}
		if reaped == 0 {
			return denied
		}
	}
}

// orphans returns the children of this process that came to it by the death of a guard, and all below them.
// Such a child is younger than the guard and in another session than the agent: a worker begins its own, and
// no process can go back to one that it has left. What this process starts itself is in its own session, but
// for the guards of its other gangs.
func orphans(since uint64) []proc.Process {
	guards.Lock()
	defer guards.Unlock()
	self, ok := proc.Read(os.Getpid())
	if !ok {
		return nil
	}
	return proc.Descendants(proc.All(), func(p proc.Process) bool {
		return p.Parent == self.Pid && p.Session != self.Session && p.StartTicks >= since && !guards.pids[p.Pid]
	})
}
