package workergroup

import (
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/gorun/gorun/env/death"
)

// A Gang is the workers of one round.
type Gang struct {
	group       *Group
	round       int
	exits       chan death.Death // has room for all
	revocations chan death.Death // has room for one of each worker

	isRevoked   bool
	revoked     chan struct{} // closed when only survivors are left
	exitsClosed bool
}

// Exits delivers the exit of every worker of the round that ends before the next round begins, and is closed when nothing is left of
// any of them.
func (g *Gang) Exits() <-chan death.Death { return g.exits }

// Revocations delivers a failure for every worker that revokes the round. The worker has not ended. The channel is never closed.
func (g *Gang) Revocations() <-chan death.Death { return g.revocations }

// Revoke ends the round, but not the workers that take part. They learn why, and which workers of this and other nodes have died, and wait
// for another round. Revoke stops the others with sig, as Stop does. It does not wait: Revoked is closed when nothing is left of them.
func (g *Gang) Revoke(sig syscall.Signal, why string, died []death.Death) {
	g.group.mu.Lock()
	defer g.group.mu.Unlock()
	g.isRevoked = true
	g.group.notifyOver(why, died...)
	for _, w := range g.group.workers {
		if w.survives = w.canSurvive(); !w.survives && !w.failed { // one that has failed is being killed
			w.stop(sig)
		}
	}
	g.group.closeIfEnded()
}

// Notify tells the survivors that more workers of other nodes have died.
func (g *Gang) Notify(died []death.Death) {
	g.group.mu.Lock()
	defer g.group.mu.Unlock()
	if len(died) > 0 {
		g.group.notifyOver("", died...)
	}
}

// Revoked is closed when nothing is left of the workers that Revoke has ended.
func (g *Gang) Revoked() <-chan struct{} { return g.revoked }

func (g *Gang) closeRevoked() {
	select {
	case <-g.revoked:
	default:
		close(g.revoked)
	}
}

func (g *Gang) closeExits() {
	if !g.exitsClosed {
		g.exitsClosed = true
		close(g.exits)
	}
}

// Stop asks all workers to end, as launcher.Gang's Stop does.
func (g *Gang) Stop(sig syscall.Signal) {
	g.group.mu.Lock()
	defer g.group.mu.Unlock()
	g.group.stopping = true
	for _, w := range g.group.workers {
		w.stop(sig)
	}
}

// Interrupted says that the agent has got a signal, as launcher.Gang's Interrupted does.
func (g *Gang) Interrupted(grace time.Duration) {
	g.group.mu.Lock()
	defer g.group.mu.Unlock()
	for _, w := range g.group.workers {
		w.gang.Interrupted(grace)
	}
}

// Kill ends all workers now.
func (g *Gang) Kill() {
	g.group.mu.Lock()
	defer g.group.mu.Unlock()
	g.group.stopping = true
	for _, w := range g.group.workers {
		w.gang.Kill()
	}
}

// Pids returns the workers' process ids, by local rank. They may have ended.
func (g *Gang) Pids() []int {
	g.group.mu.Lock()
	defer g.group.mu.Unlock()
	pids := make([]int, len(g.group.workers))
	for i, w := range g.group.workers {
		pids[i] = w.pid
	}
	return pids
}

// IsBlocked reports whether output of a worker waits, as launcher.Gang's IsBlocked does.
func (g *Gang) IsBlocked() bool {
	g.group.mu.Lock()
	defer g.group.mu.Unlock()
	return slices.ContainsFunc(g.group.workers, func(w *worker) bool { return !w.isGone() && w.gang.IsBlocked() })
}

// Fail kills one worker, by its local rank, as launcher.Gang's Fail does, and all processes that it has started, and tells the other
// workers. If quit is true, it only sends SIGQUIT to the worker: a second call, without quit, does the rest.
func (g *Gang) Fail(local int, why string, quit bool) {
	g.group.mu.Lock()
	defer g.group.mu.Unlock()
	w := g.group.workers[local]
	w.failed = true
	w.gang.Fail(0, why, quit)
	if quit || w.exit != nil {
		return
	}
	w.gang.Kill()
	g.group.notifyOver("", w.death(-int(syscall.SIGKILL), death.Hang, why))
}

// Signal passes sig to the workers.
func (g *Gang) Signal(sig syscall.Signal) { g.each(func(w *worker) { w.gang.Signal(sig) }) }

// Suspend suspends all workers, and Resume lets them go on.
func (g *Gang) Suspend() {
	g.group.mu.Lock()
	g.group.suspended = true
	g.group.mu.Unlock()
	g.each(func(w *worker) { w.gang.Suspend() })
}

// Resume undoes Suspend. The time that has passed since then does not count.
func (g *Gang) Resume(passed time.Duration) {
	g.each(func(w *worker) { w.gang.Resume(passed) })
	g.group.mu.Lock()
	defer g.group.mu.Unlock()
	g.group.suspended = false
	for _, w := range g.group.workers {
		w.extend(passed)
	}
	g.group.schedule()
}

// each calls do for all workers of which something is left, at the same time, and waits until all calls have returned.
func (g *Gang) each(do func(*worker)) {
	g.group.mu.Lock()
	workers := g.group.workers
	g.group.mu.Unlock()
	var all sync.WaitGroup
	for _, w := range workers {
		if !w.isGone() {
			all.Go(func() { do(w) })
		}
	}
	all.Wait()
}
