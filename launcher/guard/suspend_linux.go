package guard

import (
	"syscall"
	"time"

	"github.com/gorun/gorun/launcher/proc"
)

// A suspension lasts from verbSuspend to verbResume.
type suspension struct {
	processes []proc.Process // that were suspended for it
	grace     time.Duration  // that was left
}

// suspend suspends all descendants that are not already suspended, parents first, until it finds no new one. The gang's
// time limits stop.
func (g *gang) suspend() {
	if g.suspended == nil {
		g.suspended = &suspension{grace: time.Until(g.graceEnds)}
	}
	if g.phase != killing {
		each(g.descendants, func(p proc.Process) {
			if !p.Zombie && !p.Suspended && p.Signal(syscall.SIGSTOP) == nil { // else it has ended, or is another user's
				g.suspended.processes = append(g.suspended.processes, p)
			}
		})
	}
	g.send(Event{Suspended: true})
}

// resume undoes suspend.
func (g *gang) resume() {
	was := g.suspended
	if was == nil {
		return
	}
	g.suspended = nil
	for _, p := range was.processes {
		_ = p.Signal(syscall.SIGCONT) // it may have been killed
	}
	if g.grace != nil {
		g.startGrace(was.grace)
	}
	if g.killEnds != nil {
		g.killEnds = time.After(g.killTimeout)
	}
}

// startGrace gives the gang some time from now on, or, if it is suspended, from its end on.
func (g *gang) startGrace(d time.Duration) {
	if g.suspended != nil {
		g.suspended.grace = d
	}
	g.graceEnds = time.Now().Add(d)
	g.grace = time.After(d)
}
