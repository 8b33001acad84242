package node

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/gorun/gorun/env/testing/testkit"
)

// TestLeaderDies before and after everything that it writes, once or each time. The others finish the job, and everything is decided once.
func TestLeaderDies(t *testing.T) {
	testkit.WithoutRace(t) // each job is played in one goroutine
	for what, is := range map[string]func(*writeDecision) bool{
		"campaign": func(d *writeDecision) bool { return d == nil },
		"form":     func(d *writeDecision) bool { return d != nil && d.decision.Form != nil },
		"end":      func(d *writeDecision) bool { return d != nil && d.decision.Over != nil },
		"close":    func(d *writeDecision) bool { return d != nil && d.decision.Close != nil },
	} {
		var killed atomic.Int32
		if seed, err := playSeeds(1, 40, func(w *simWorld) {
			before, always, dead := w.chance(50), w.chance(30), false
			w.alter = func(a *simAgent, act action) action {
				d, decides := requestOf[*writeDecision](act)
				_, campaigns := requestOf[*campaign](act)
				if !decides && !campaigns || !is(d) || dead && !always {
					return act
				}
				dead = true
				killed.Add(1)
				w.carryOut(a, "die", func(ctx context.Context, x *executor) {
					if before {
						x.pause(ctx, 0)
					} else {
						_ = act.(asked).do(ctx, x)
					}
				}, func() { a.exit(false) })
				return nil
			}
		}); err != nil {
			t.Errorf("%s: seed %d: %v", what, seed, err)
		}
		if killed.Load() == 0 {
			t.Errorf("%s: nobody has died", what)
		}
	}
}
