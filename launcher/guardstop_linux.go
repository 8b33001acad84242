package launcher

import (
	"errors"
	"os"
	"syscall"
)

// happened moves the gang to the phase that follows from h. Stopping reads, in full: signal the sessions of
// the workers; wait for the first of their end, the end of the grace period, a kill command or the agent's
// death (the select in loop); then sweep and reap until nothing is left.
func (g *guard) happened(h happening) {
	was := g.phase
	g.phase = was.next(h)
	if was == running && g.phase == stopping {
		for pgid := range g.groups() {
			_ = syscall.Kill(-pgid, g.signal)        // fails if the group has just ended, or is another user's
			_ = syscall.Kill(-pgid, syscall.SIGCONT) // a suspended worker could not act on the signal
		}
	}
}

// ended reports whether the gang is through: its workers have exited and, if it is being stopped, so have all
// that got the signal. A shell dies of it at once; the program that it runs may be writing a checkpoint.
func (g *guard) ended() bool {
	return len(g.workers) == 0 && (g.phase != stopping || len(g.groups()) == 0)
}

// groups are the process groups in the workers' sessions in which anything lives.
func (g *guard) groups() map[int]bool {
	groups := map[int]bool{}
	for _, p := range g.descendants() {
		if g.sessions[p.sid] && !p.zombie {
			groups[p.pgid] = true
		}
	}
	return groups
}

// signalWorkers signals the workers and nobody else: to SIGUSR1, say, a worker's helpers may have no answer
// but to die.
func (g *guard) signalWorkers(sig syscall.Signal) {
	for pid := range g.workers {
		_ = syscall.Kill(pid, sig) // it may have become another user's
	}
}

// sweep sends SIGKILL to every descendant. It is called again after every exit, until there is no child: what
// was forked behind its back has a parent that got the signal, becomes the guard's child by the death of
// that parent, and this death calls sweep again.
func (g *guard) sweep() {
	for !g.gone {
		killed, denied := killAll(g.descendants())
		if killed > 0 {
			return
		}
		if g.reap() > 0 {
			continue // one that ended under the walk through /proc may have hidden another
		}
		if !g.gone {
			g.send(event{Left: denied})
			g.gone = true
		}
	}
}

func (g *guard) descendants() []process {
	self := os.Getpid()
	return descendants(processes(), func(p process) bool { return p.ppid == self })
}

// killAll sends SIGKILL to those alive. It returns to how many, and the pids of those it may not kill.
func killAll(list []process) (killed int, denied []int) {
	for _, p := range list {
		if p.zombie {
			continue
		}
		switch err := syscall.Kill(p.pid, syscall.SIGKILL); {
		case err == nil:
			killed++
		case errors.Is(err, syscall.EPERM):
			denied = append(denied, p.pid)
		}
	}
	return killed, denied
}
