package guard

import (
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/gorun/gorun/launcher/proc"
)

// transition moves the gang to the phase that follows from h. To stop a gang, the guard signals the other processes in its session; waits
// until they have ended, the grace period is over, a kill command comes or the agent dies (the select in loop); kills what still works;
// gives what is left some time to end (see phase); and then sweeps and reaps until nothing is left.
func (g *gang) transition(h trigger) {
	was := g.phase
	g.phase = was.next(h)
	if g.phase == was {
		return
	}
	if d, ok := lasts[g.phase]; ok {
		g.startGrace(d)
	}
	switch g.phase {
	case running, leaving:
	case stopping:
		g.signalSession(g.signal)
	case askedSession:
		g.ask(g.sessionProcesses())
	case askedAll:
		if was < leaving {
			g.killSession()
		}
		g.ask(g.descendants())
	case killing:
		g.killEnds = time.After(g.killTimeout)
	}
}

// signalSession signals the workers, and what they have started that is still in the session of the guard, unless sig is 0. It wakes those
// that are suspended, since they could not act on it.
// As long as a worker has not been reaped, no other process group can get its number, so it is safe to signal its group as a whole.
// Processes in other groups get the signal one by one, checked by pid and start time, until no new ones appear, because the number of
// such a group may by now belong to a stranger.
func (g *gang) signalSession(sig syscall.Signal) {
	for pid := range g.workers {
		_ = syscall.Kill(-pid, sig) // fails if all in it are dead, or other users'
		_ = syscall.Kill(-pid, syscall.SIGCONT)
	}
	each(g.unledProcesses, func(p proc.Process) {
		_, _ = p.Signal(sig), p.Signal(syscall.SIGCONT) // it may have ended, or be another user's
	})
}

// each calls do once for every process that list returns, and repeats list until it returns no new process.
func each(list func() []proc.Process, do func(proc.Process)) {
	type processID struct {
		pid   int
		start uint64
	}
	seen := map[processID]bool{}
	for fresh := true; fresh; {
		fresh = false
		for _, p := range list() {
			if id := (processID{p.Pid, p.StartTicks}); !seen[id] {
				fresh, seen[id] = true, true
				do(p)
			}
		}
	}
}

// ended reports whether the workers have exited and, if the gang is being stopped, all processes that got the
// signal. A shell dies of the signal at once, but the program that it runs may still be writing a checkpoint.
func (g *gang) ended() bool {
	return len(g.workers) == 0 && (g.phase != stopping || g.gone || len(g.sessionProcesses()) == 0)
}

// sessionProcesses returns the live processes in the session of the guard, but for the guard itself.
func (g *gang) sessionProcesses() []proc.Process {
	self := os.Getpid()
	return slices.DeleteFunc(g.descendants(), func(p proc.Process) bool { return p.Session != self || p.Zombie })
}

// unledProcesses returns those that are in no worker's process group.
func (g *gang) unledProcesses() []proc.Process {
	return slices.DeleteFunc(g.sessionProcesses(), func(p proc.Process) bool { _, led := g.workers[p.Group]; return led })
}

// signalWorkers signals only the workers. A signal such as SIGUSR1 might kill their helpers.
func (g *gang) signalWorkers(sig syscall.Signal) {
	for pid := range g.workers {
		_ = syscall.Kill(pid, sig) // it may have become another user's
	}
}

// sweep sends SIGKILL to every descendant. It is called again after every exit until no child is left: if a
// process was forked that sweep did not see, its parent got the signal. When the parent dies, the process
// becomes the guard's child, and sweep runs again.
func (g *gang) sweep() {
	for !g.gone {
		list := g.descendants()
		for _, p := range list {
			g.noteLeft(p)
		}
		killed, denied := proc.KillAll(list)
		for _, pid := range denied {
			delete(g.left, pid)
		}
		if killed > 0 {
			return
		}
		if g.reap() > 0 {
			continue // one that ended under the walk through /proc may have hidden another
		}
		if !g.gone {
			g.send(Event{Denied: denied})
			g.gone = true
		}
	}
}

// abandonStuck gives up processes that SIGKILL has not ended: they are blocked in the kernel or frozen, and will never
// run their program again.
func (g *gang) abandonStuck() {
	var stuck []int
	for _, p := range g.descendants() {
		if !p.Zombie {
			stuck = append(stuck, p.Pid)
		}
	}
	g.send(Event{Stuck: stuck})
	g.gone = true
}

func (g *gang) descendants() []proc.Process {
	self := os.Getpid()
	return proc.Descendants(proc.All(), func(p proc.Process) bool { return p.Parent == self })
}
