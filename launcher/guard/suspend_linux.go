package guard

import (
	"syscall"
	"time"

	"github.com/gorun/gorun/env/proc"
)

// A suspension lasts from verbSuspend to verbResume.
type suspension struct {
	processes []proc.Process // that were suspended for it
	since     time.Time
}

// suspend suspends all descendants that are not already suspended, parents first, until it finds no new one. The gang's
// time limits stop.
func (g *gang) suspend() {
	if g.suspended == nil {
		g.suspended = &suspension{since: time.Now()}
	}
	each(g.descendants, func(p proc.Process) {
		if !p.Zombie && !p.Suspended && p.Signal(syscall.SIGSTOP) == nil { // else it has ended, or is another user's
			g.suspended.processes = append(g.suspended.processes, p)
		}
	})
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
	for _, u := range g.units {
		if !u.ends.IsZero() {
			u.ends = u.ends.Add(time.Since(was.since))
		}
	}
}
