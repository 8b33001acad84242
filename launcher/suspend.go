package launcher

import (
	"sync"
	"time"

	"github.com/gorun/gorun/launcher/guard"
)

// suspendTimeout is how long the suspension of a gang is waited for.
const suspendTimeout = 2 * time.Second

// A clock is what the agent's side of a gang knows of time that does not count while the gang is suspended.
type clock struct {
	mu     sync.Mutex
	limits map[*worker]time.Time // when the agent gives up a guard that has not reported the end of a worker which is being ended
}

// first is the first of the limits; zero: there is none.
func (c *clock) first() (first time.Time) {
	for _, at := range c.limits {
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

// Suspend suspends every process of the gang, but for those that are suspended already, and returns when that is done. From
// now to Resume no time counts: no grace period runs out.
func (g *Gang) Suspend() {
	g.guard.Load().AnswerBy(time.Time{})
	select {
	case <-g.suspended: // of an earlier time, when it came late
	default:
	}
	g.guard.Load().Suspend()
	select {
	case <-g.suspended:
	case <-time.After(suspendTimeout):
		g.spec.warn("the workers may not all be suspended: their guard does not answer")
	}
}

// haveSuspended says that the guard has suspended all, or never will.
func (g *Gang) haveSuspended() {
	select {
	case g.suspended <- struct{}{}:
	default:
	}
}

// Resume continues what Suspend has suspended. All time limits move by the time that has passed.
func (g *Gang) Resume(passed time.Duration) {
	g.guard.Load().Resume()
	g.clock.mu.Lock()
	defer g.clock.mu.Unlock()
	for w, at := range g.clock.limits {
		g.clock.limits[w] = at.Add(passed)
	}
	g.guard.Load().AnswerBy(g.clock.first())
}

// answerIn sets when the agent gives up on a guard that has not reported that these workers have ended: some time after
// the guard kills them.
func (g *Gang) answerIn(workers []*worker, grace time.Duration) {
	g.clock.mu.Lock()
	defer g.clock.mu.Unlock()
	for _, w := range workers {
		if !w.hasEnded {
			g.clock.limits[w] = time.Now().Add(grace + guard.LeftTimeout + g.spec.killTimeout() + guardTimeout)
		}
	}
	g.guard.Load().AnswerBy(g.clock.first())
}

// hasEnded notes the end of a worker, which the guard need not report any more. Without Spec.Apart, it still has to
// report that of the gang.
func (g *Gang) hasEnded(w *worker) {
	g.clock.mu.Lock()
	defer g.clock.mu.Unlock()
	w.hasEnded = true
	if delete(g.clock.limits, w); g.spec.Apart {
		g.guard.Load().AnswerBy(g.clock.first())
	}
}

// guardTimeout is how long after the workers' time is over a guard has to report it.
const guardTimeout = 5 * time.Second
