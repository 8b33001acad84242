package guard

import (
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/gorun/gorun/env/proc"
)

// end ends the workers that a command names.
func (g *gang) end(c message) {
	g.unite(c.Workers)
	sig, kills := syscall.Signal(c.Signal), c.Verb == verbKill || c.Grace <= 0
	if c.Interrupt && slices.ContainsFunc(g.units, (*unit).runs) && g.step.reached(sig) {
		sig = 0
	}
	for _, u := range g.units {
		switch {
		case !u.has(c.Workers):
		case kills:
			u.transition(killAsked)
		case u.phase <= stopping:
			u.setTime(c.Grace)
			if u.phase == running {
				u.signal = sig
				u.transition(stopAsked)
			}
		}
	}
	if kills && !slices.ContainsFunc(g.units, (*unit).runs) {
		g.resume() // so that what is left can end
	}
}

// proceed makes the unit go on as far as it can without waiting.
func (u *unit) proceed() {
	if u.isEmpty() {
		u.gone = true
	}
	if u.gone {
		return
	}
	if u.ended() {
		u.transition(allEnded)
	}
	if u.phase == killing {
		u.sweep()
	}
}

// checkTime makes the unit go on if its time is over.
func (u *unit) checkTime(now time.Time) {
	switch {
	case u.ends.IsZero() || now.Before(u.ends):
	case u.phase == killing:
		u.abandonStuck()
	default:
		u.transition(timeOver)
	}
}

// setTime gives the unit some time from now on.
func (u *unit) setTime(d time.Duration) { u.ends = time.Now().Add(d) }

// transition moves the unit to the phase that follows from h. To stop a unit, the guard signals its other processes
// in the session; waits until they have ended, the grace period is over, a kill command comes or the agent dies (the
// select in loop); kills what still works; gives what is left some time to end (see phase); and then sweeps and reaps
// until nothing is left.
func (u *unit) transition(h trigger) {
	was := u.phase
	u.phase = was.next(h)
	if u.phase == was {
		return
	}
	if d, ok := lasts[u.phase]; ok {
		u.setTime(d)
	}
	switch u.phase {
	case running, leaving:
	case stopping:
		u.signalSession(u.signal)
	case askedSession:
		u.ask(u.sessionProcesses())
	case askedAll:
		if was < leaving {
			u.killSession()
		}
		u.ask(u.descendants())
	case killing:
		u.setTime(u.gang.killTimeout)
	}
}

// signalSession signals the workers, and what they have started that is still in the session of the guard, unless sig is 0. It wakes those
// that are suspended, since they could not act on it.
// As long as a worker has not been reaped, no other process group can get its number, so it is safe to signal its group as a whole.
// Processes in other groups get the signal one by one, checked by pid and start time, until no new ones appear, because the number of
// such a group may by now belong to a stranger.
func (u *unit) signalSession(sig syscall.Signal) {
	for _, w := range u.living() {
		_ = syscall.Kill(-w.pid, sig) // fails if all in it are dead, or other users'
		_ = syscall.Kill(-w.pid, syscall.SIGCONT)
	}
	each(u.unledProcesses, func(p proc.Process) {
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

// ended reports whether the workers have exited and, if the unit is being stopped, all processes that got the
// signal. A shell dies of the signal at once, but the program that it runs may still be writing a checkpoint.
func (u *unit) ended() bool {
	return len(u.living()) == 0 && (u.phase != stopping || len(u.sessionProcesses()) == 0)
}

// sessionProcesses returns the live processes of the unit in the session of the guard.
func (u *unit) sessionProcesses() []proc.Process {
	self := os.Getpid()
	return slices.DeleteFunc(u.descendants(), func(p proc.Process) bool { return p.Session != self || p.Zombie })
}

// unledProcesses returns those that are in no living worker's process group.
func (u *unit) unledProcesses() []proc.Process {
	return slices.DeleteFunc(u.sessionProcesses(), func(p proc.Process) bool { w := u.gang.workers[p.Group]; return w != nil && !w.ended })
}

// signalWorkers signals only the workers. A signal such as SIGUSR1 might kill their helpers.
func (g *gang) signalWorkers(sig syscall.Signal) {
	for pid, w := range g.workers {
		if !w.ended {
			_ = syscall.Kill(pid, sig) // it may have become another user's
		}
	}
}

// sweep sends SIGKILL to every descendant. It is called again after every exit until no child is left: if a
// process was forked that sweep did not see, its parent got the signal. When the parent dies, the process
// becomes the guard's child, and sweep runs again.
func (u *unit) sweep() {
	for !u.isEmpty() {
		list := u.descendants()
		for _, p := range list {
			u.noteLeft(p)
		}
		killed, denied := proc.KillAll(list)
		for _, pid := range denied {
			delete(u.left, pid)
		}
		if killed > 0 {
			return
		}
		if u.gang.reap() > 0 {
			continue // one that ended under the walk through /proc may have hidden another
		}
		if len(denied) > 0 {
			u.gang.send(Event{Denied: denied})
			u.abandon(list)
		}
		return
	}
	u.gone = true
}

// abandonStuck gives up processes that SIGKILL has not ended: they are blocked in the kernel or frozen, and will never
// run their program again.
func (u *unit) abandonStuck() {
	list := slices.DeleteFunc(u.descendants(), func(p proc.Process) bool { return p.Zombie })
	var stuck []int
	for _, p := range list {
		stuck = append(stuck, p.Pid)
	}
	u.gang.send(Event{Stuck: stuck})
	u.abandon(list)
}

// abandon leaves processes alone that cannot be ended.
func (u *unit) abandon(list []proc.Process) {
	for _, p := range list {
		u.gang.spared[p.Pid] = p.StartTicks
	}
	u.gone = true
}
