package launcher

import (
	"slices"
	"syscall"
	"time"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/launcher/guard"
)

// This file is about what the guards of a gang report.

// run follows the gang's guards. It is the gang's only goroutine besides the readers of the pipes.
func (g *Gang) run() {
	defer close(g.exits)
	for its := range g.guards {
		lost := !g.follow(its)
		if lost {
			g.haveSuspended()
			g.endGuard(its)
		}
		workers := g.leaveUnguarded()
		deaths := make([]death.Death, len(workers)) // all before the agent learns of the first one, and stops the others
		for i, w := range workers {
			if deaths[i] = unreported(w); lost {
				deaths[i].Cause = death.GuardLost
			}
		}
		for i, w := range workers {
			select {
			case <-w.gone:
			default:
				g.end(w, deaths[i])
			}
		}
		g.release(its, lost)
	}
}

// leaveUnguarded notes that these workers have no guard any more. Others get another guard.
func (g *Gang) leaveUnguarded() []*worker {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.guarded = false
	return g.present()
}

// follow reports exits until the guard says that nothing is left. It returns false if the guard dies first.
func (g *Gang) follow(its *guard.Guard) bool {
	for {
		e, err := its.Next()
		if err != nil {
			return false
		}
		switch {
		case e.Started != nil || e.NotStarted != nil:
			g.answered(e)
		case e.Exit != nil:
			g.report(g.workers[e.Exit.Worker].Load(), deathOf(e.Exit))
		case e.Ended != nil:
			for _, local := range e.Ended {
				w := g.workers[local].Load()
				g.end(w, unreported(w))
			}
		case e.Denied != nil:
			g.warnDenied(e.Denied)
		case e.Stuck != nil:
			g.warnStuck(e.Stuck)
		case e.Suspended:
			g.haveSuspended()
		case e.Left != nil:
			g.warnLeft(e.Left)
		case e.Warning != "":
			g.spec.warn("%s", e.Warning)
		case e.Gone:
			return true
		}
	}
}

// answered passes on the guard's answer to a request.
func (g *Gang) answered(e guard.Event) {
	asked := slices.DeleteFunc(g.present(), func(w *worker) bool { return w.pid.Load() != 0 })
	for _, w := range asked {
		w.pid.Store(int64(e.Started[w.local]))
		w.unwanted.Store(w.unwanted.Load() || e.NotStarted != nil)
	}
	for _, w := range asked {
		w.pass(e)
	}
}

// pass passes the answer on to whoever starts the worker, if there has been none.
func (w *worker) pass(e guard.Event) {
	select {
	case w.answer <- e:
	default:
	}
}

// unreported returns the death of a worker whose exit the guard has not reported, because it died first or may not kill
// the worker.
func unreported(w *worker) death.Death {
	return death.Death{ExitCode: -int(syscall.SIGKILL), At: time.Now(), Stopped: w.stopping.Load()}
}

// end ends what is here of a worker of which nothing is left. d is its death if the guard has not reported its exit.
func (g *Gang) end(w *worker, d death.Death) {
	g.hasEnded(w)
	if !w.reported {
		g.report(w, d)
	}
	for _, s := range []*stream{w.out, w.err} {
		s.sync()
		s.close()
	}
	close(w.gone)
	w.pass(guard.Event{}) // if the guard has been lost first
	if g.spec.Apart && !w.unwanted.Load() {
		g.ended <- w.local
	}
}

// deathOf returns what the guard says of a death.
func deathOf(e *guard.Exit) death.Death {
	d := death.Death{
		At: time.Unix(0, e.At), Stopped: e.Stopped, Interrupt: syscall.Signal(e.Interrupt), OutOfMemory: e.OutOfMemory,
	}
	if status := syscall.WaitStatus(e.Status); status.Signaled() {
		d.ExitCode = -int(status.Signal())
	} else {
		d.ExitCode = status.ExitStatus()
	}
	return d
}

// report passes on everything that the worker has written, and then delivers its death. If gorun has sent it a signal, nobody else did.
func (g *Gang) report(w *worker, d death.Death) {
	w.reported = true
	w.out.sync()
	d.Rank, d.LocalRank, d.Host, d.Pid = int(w.rank.Load()), w.local, g.spec.Host, int(w.pid.Load())
	d.Stderr = w.err.sync()
	if why := w.hung.Load(); why != nil && d.Failed() {
		d.Cause, d.Why, d.OutOfMemory, d.Stopped = death.Hang, *why, false, false
		d.ExitCode = -int(syscall.SIGKILL) // as others have been told before, whatever the signal for its stacks has done
	}
	if !w.unwanted.Load() {
		g.exits <- d
	}
}
