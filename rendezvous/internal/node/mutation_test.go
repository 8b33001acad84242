package node

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/gorun/gorun/env/testing/testkit"
	"github.com/gorun/gorun/rendezvous/internal/store"
)

// without drops the comparisons of keys that have something in them from transactions that write such keys.
func without(compared, written string) func(*simWorld) {
	return func(w *simWorld) {
		w.mutate = func(t store.Txn) store.Txn {
			if slices.ContainsFunc(t.Puts, func(p store.Put) bool { return strings.Contains(p.Key, written) }) {
				t.When = slices.DeleteFunc(slices.Clone(t.When), func(c store.Cond) bool { return strings.Contains(c.First, compared) })
			}
			return t
		}
	}
}

// altered changes what machines want done.
func altered(change func(*simAgent, action) action) func(*simWorld) {
	return func(w *simWorld) { w.alter = change }
}

// requestOf is the request that an action has carried out.
func requestOf[T request](act action) (r T, ok bool) {
	a, asks := act.(asked)
	if asks {
		r, ok = a.request.(T)
	}
	return r, ok
}

// closeTwice has a leader that closes the job do so twice, with different codes.
func closeTwice(a *simAgent, act action) action {
	if d, ok := requestOf[*writeDecision](act); ok && d.decision.Close != nil {
		again, outcome := *d, *d.decision.Close
		outcome.Code++
		again.decision.Close = &outcome
		a.world.carryOut(a, "close", func(ctx context.Context, x *executor) { _ = again.do(ctx, x) }, func() {})
	}
	return act
}

// TestSimulationFinds: without one of the things that keep a job right, some of the simulated jobs go wrong.
func TestSimulationFinds(t *testing.T) {
	if testkit.Race {
		t.Skip("each job is played in one goroutine")
	}
	for what, change := range map[string]func(*simWorld){
		"who is not the leader any more decides": func(w *simWorld) {
			without("job/leader", "job/current")(w)
			leader := w.mutate
			without("job/current", "job/current")(w)
			current := w.mutate
			w.mutate = func(t store.Txn) store.Txn { return current(leader(t)) }
		},
		"a job is closed twice": func(w *simWorld) {
			without("job/", "job/state")(w)
			w.alter = closeTwice
		},
		"a failure costs two restarts": altered(func(_ *simAgent, act action) action {
			if d, ok := requestOf[*writeDecision](act); ok && d.decision.Over != nil {
				d.decision.Over.Restarts += strings.Count(d.decision.Over.Why, "; restart ")
			}
			return act
		}),
		"a host that does not stay is not put on record": altered(func(_ *simAgent, act action) action {
			if d, ok := requestOf[*writeDecision](act); ok && d.decision.Over != nil {
				d.decision.Over.Lost = nil
			}
			return act
		}),
		"the record of hosts that do not stay is lost": altered(func(_ *simAgent, act action) action {
			if d, ok := requestOf[*writeDecision](act); ok && d.decision.Form != nil {
				d.decision.Form.Losses = nil
			}
			return act
		}),
		"a report is of another round": altered(func(_ *simAgent, act action) action {
			if r, ok := requestOf[*recordReport](act); ok && r.round > 1 {
				r.round--
			}
			return act
		}),
		"nobody ends a job that etcd has lost": altered(func(_ *simAgent, act action) action {
			if _, ok := requestOf[*reportLost](act); ok {
				return nil
			}
			return act
		}),
		"a Report is not answered": altered(func(_ *simAgent, act action) action {
			if _, ok := act.(answerReport); ok {
				return nil
			}
			return act
		}),
		"a round does not end": altered(func(a *simAgent, act action) action {
			if _, ok := act.(endRound); ok && a.name == "n1" {
				return nil
			}
			return act
		}),
	} {
		if seed, err := playSeeds(1, 1500, change); err == nil {
			t.Errorf("%s: no job goes wrong", what)
		} else {
			text, _, _ := strings.Cut(err.Error(), "\n")
			t.Logf("%s: seed %d: %.160s", what, seed, text)
		}
	}
}
