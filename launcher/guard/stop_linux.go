package guard

import (
	"os"
	"syscall"

	"github.com/gorun/gorun/launcher/proc"
)

// happened moves the gang to the phase that follows from h. Stopping reads, in full: signal the sessions of
// the workers; wait for the first of their end, the end of the grace period, a kill command or the agent's
// death (the select in loop); then sweep and reap until nothing is left.
func (g *gang) happened(h happening) {
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
func (g *gang) ended() bool {
	return len(g.workers) == 0 && (g.phase != stopping || len(g.groups()) == 0)
}

// groups are the process groups in the workers' sessions in which anything lives.
func (g *gang) groups() map[int]bool {
	groups := map[int]bool{}
	for _, p := range g.descendants() {
		if g.sessions[p.Session] && !p.Zombie {
			groups[p.Group] = true
		}
	}
	return groups
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

func (g *gang) descendants() []proc.Process {
	self := os.Getpid()
	return proc.Descendants(proc.All(), func(p proc.Process) bool { return p.Parent == self })
}
