package guard

import (
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/gorun/gorun/launcher/proc"
)

// transition moves the gang to the phase that follows from h. A whole stop is: signal the sessions of the workers; wait until they have
// ended, the grace period is over, a kill command comes or the agent dies, whichever is first (the select in loop); then sweep and reap
// until nothing is left.
func (g *gang) transition(h trigger) {
	was := g.phase
	g.phase = was.next(h)
	if was == running && g.phase == stopping {
		g.signalSessions(g.signal)
	}
	if was != killing && g.phase == killing {
		g.killEnds = time.After(g.killTimeout)
	}
}

// signalSessions signals all processes in the workers' sessions, and wakes those that are suspended, since they could not
// act on it. As long as a worker has not been reaped, no other process group can get its number, so it is safe to signal its
// group as a whole. Members of other groups get the signal one by one, checked by pid and start time, until no new ones appear: by its
// number alone, a group may be a stranger's by now.
func (g *gang) signalSessions(sig syscall.Signal) {
	for pid := range g.workers {
		_ = syscall.Kill(-pid, sig) // fails if all in it are dead, or other users'
		_ = syscall.Kill(-pid, syscall.SIGCONT)
	}
	each(g.members, func(p proc.Process) {
		if _, led := g.workers[p.Group]; !led {
			_, _ = p.Signal(sig), p.Signal(syscall.SIGCONT) // it may have ended, or be another user's
		}
	})
}

// each does something to all processes that list gives, once, until it gives none that was not there before.
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

// ended reports whether the gang is through: its workers have exited and, if it is being stopped, so have all
// that got the signal. A shell dies of it at once; the program that it runs may be writing a checkpoint.
func (g *gang) ended() bool {
	return len(g.workers) == 0 && (g.phase != stopping || len(g.members()) == 0)
}

// members are the processes in the workers' sessions that live.
func (g *gang) members() []proc.Process {
	return slices.DeleteFunc(g.descendants(), func(p proc.Process) bool { return !g.sessions[p.Session] || p.Zombie })
}

// signalWorkers signals the workers and nobody else: to SIGUSR1, say, a worker's helpers may have no answer
// but to die.
func (g *gang) signalWorkers(sig syscall.Signal) {
	for pid := range g.workers {
		_ = syscall.Kill(pid, sig) // it may have become another user's
	}
}

// sweep sends SIGKILL to every descendant. It is called again after every exit, until there is no child: what
// was forked behind its back has a parent that got the signal, becomes the guard's child by the death of
// that parent, and this death calls sweep again.
func (g *gang) sweep() {
	for !g.gone {
		killed, denied := proc.KillAll(g.descendants())
		if killed > 0 {
			return
		}
		if g.reap() > 0 {
			continue // one that ended under the walk through /proc may have hidden another
		}
		if !g.gone {
			g.send(Event{Left: denied})
			g.gone = true
		}
	}
}

// abandonStuck gives up the processes that SIGKILL has not ended: they are asleep in the kernel, or frozen, and never run
// again in their program.
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
