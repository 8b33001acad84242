package rendezvous_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/rendezvous"
)

// TestFormProperties lets anything happen in any order.
func TestFormProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		least := rapid.IntRange(1, 4).Draw(t, "min")
		c := newCluster(least, least+rapid.IntRange(0, 3).Draw(t, "more"), rapid.IntRange(0, 3).Draw(t, "restarts"))
		c.s.ScaleUp = rapid.SampledFrom([]rendezvous.ScaleUp{
			rendezvous.ScaleImmediate, rendezvous.ScaleOnRestart, rendezvous.ScaleNever,
		}).Draw(t, "scale up")
		some := func(t *rapid.T) string {
			if len(c.s.Nodes) == 0 {
				t.Skip("nobody is here")
			}
			return rapid.SampledFrom(c.s.Nodes).Draw(t, "node").Key
		}
		tries := make(map[string]int)
		t.Repeat(map[string]func(*rapid.T){
			"come": func(t *rapid.T) {
				host := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "host")
				c.comeFrom(host, rapid.IntRange(-1, 6).Draw(t, "rank"))
			},
			"die":      func(t *rapid.T) { c.die(some(t)) },
			"leave":    func(t *rapid.T) { c.leave(some(t), rendezvous.Outcome{Code: rapid.IntRange(0, 1).Draw(t, "code")}) },
			"join":     func(t *rapid.T) { c.again(some(t)) },
			"withdraw": func(t *rapid.T) { c.withdraw(some(t)) },
			"hear":     func(t *rapid.T) { c.node(some(t)).Joining = false }, // from a node that has been cut off
			"cut":      func(*rapid.T) { c.s.Settled = !c.s.Settled },
			"scale": func(t *rapid.T) {
				c.s.Min = rapid.IntRange(1, 5).Draw(t, "least")
				c.s.Max = c.s.Min + rapid.IntRange(0, 3).Draw(t, "more")
			},
			"succeed": func(t *rapid.T) {
				c.report(some(t), nil)
			},
			"fail": func(t *rapid.T) {
				f := &rendezvous.Failure{Death: death.Death{ExitCode: rapid.IntRange(1, 255).Draw(t, "code")}}
				if rapid.Bool().Draw(t, "follows") {
					rank := rapid.IntRange(-1, 8)
					f.FailedPeer = &death.Peer{Rank: rank.Draw(t, "because of"), Finder: rank.Draw(t, "finder")}
				}
				c.report(some(t), f)
			},
			"": func(t *rapid.T) {
				before := c.s
				rounds := len(c.formed)
				checkEnough(t, before)
				d := c.settle(rapid.SampledFrom([]time.Duration{0, time.Second, 30 * time.Second, waits}).Draw(t, "passed"))
				if c.closed != nil {
					if len(c.formed) > rounds && c.closed.Failure != nil {
						t.Fatalf("a round failed that nobody has heard of")
					}
					checkRootCause(t, c.s, c.closed.Failure)
					t.Skip("closed")
				}
				if d.Wait == "" || d.After < 0 {
					t.Fatalf("it waits for %q, %v", d.Wait, d.After)
				}
				for _, f := range c.formed[rounds:] {
					checkFormed(t, before, f)
					checkTries(t, tries, f)
					checkKeptOut(t, before, f)
				}
			},
		})
	})
}

// checkEnough: a round that runs is not ended for newcomers or for fewer nodes, unless there are enough for another one.
func checkEnough(t *rapid.T, s rendezvous.State) {
	over := rendezvous.Form(s).Over
	if over == nil || !strings.HasPrefix(over.Why, "more nodes") && !strings.HasPrefix(over.Why, "the job has at most") {
		return
	}
	next := s
	next.Over, next.Reports = over, nil
	next.Nodes = slices.Clone(s.Nodes)
	for _, m := range s.Last.Members {
		i := slices.IndexFunc(next.Nodes, func(n rendezvous.Candidate) bool { return n.Key == m.Key })
		if i < 0 {
			return // it may come back
		}
		if n := &next.Nodes[i]; n.Try == m.Try {
			n.Joining, n.Try = true, n.Try+1
		}
	}
	next.Stage, next.Waited = rendezvous.Stage{Round: s.Last.ID + 1, For: rendezvous.LastCall}, waits
	if rendezvous.Form(next).Form == nil {
		t.Fatalf("%s: %s", over.Why, rendezvous.Form(next).Reason())
	}
}

// checkRootCause: no job is closed with a failure that happened because of a worker whose own failure is known. Nodes have a worker each.
func checkRootCause(t *rapid.T, s rendezvous.State, f *rendezvous.Failure) {
	if f == nil || f.FailedPeer == nil || f.FailedPeer.Rank < 0 || f.FailedPeer.Rank >= len(s.Last.Members) {
		return
	}
	peer := s.Last.Members[f.FailedPeer.Rank].Key
	for _, r := range s.Reports {
		if r.Key == peer && r.Failure != nil { // the first that it has reported
			if r.Failure.FailedPeer == nil {
				t.Fatalf("the job is closed with %+v, which happened because of %+v", f, r.Failure)
			}
			return
		}
	}
}

// checkFormed holds f against the situation that it has come of, or one shortly before.
func checkFormed(t *rapid.T, s rendezvous.State, f rendezvous.Formed) {
	if n := len(f.Members); n < s.Min || n > s.Max {
		t.Fatalf("round %d has %d members, want %d to %d", f.ID, n, s.Min, s.Max)
	}
	distinct := make(map[string]bool)
	for _, m := range f.Members {
		distinct[m.Key] = true
		if !m.Joining || !slices.Contains(s.Nodes, m) {
			t.Fatalf("%s is in round %d, and not here, or not joining", m.Key, f.ID)
		}
	}
	if len(distinct) != len(f.Members) {
		t.Fatalf("%d nodes have %d ranks: %v", len(distinct), len(f.Members), slices.Sorted(maps.Keys(distinct)))
	}
	if f.Restarts > s.MaxRestarts {
		t.Fatalf("round %d comes after %d restarts of %d", f.ID, f.Restarts, s.MaxRestarts)
	}
	if s.Last == nil {
		if f.ID != 1 || f.Restarts != 0 {
			t.Fatalf("the first round is %+v", f)
		}
		return
	}
	failed := slices.ContainsFunc(s.Reports, func(r rendezvous.Report) bool { return r.Failure != nil })
	if f.ID != s.Last.ID+1 || f.Why == "" || f.Restarts != s.Last.Restarts && s.Over == nil && !failed || f.Restarts > s.Last.Restarts+1 {
		t.Fatalf("round %d, %d restarts, %q follows round %d, %d restarts", f.ID, f.Restarts, f.Why, s.Last.ID, s.Last.Restarts)
	}
	if len(f.Members) != len(s.Last.Members) {
		return
	}
	for rank, m := range s.Last.Members {
		if distinct[m.Key] && f.Members[rank].Key != m.Key {
			t.Fatalf("%s had rank %d and has not: %s", m.Key, rank, keys(f.Members))
		}
	}
}

// checkTries wants nobody in a round who has not waited again since the one that it was in before, however long ago.
func checkTries(t *rapid.T, tries map[string]int, f rendezvous.Formed) {
	for _, m := range f.Members {
		if m.Try <= tries[m.Key] {
			t.Fatalf("round %d has %s, which has not waited again since it has got another", f.ID, m.Key)
		}
		tries[m.Key] = m.Try
	}
}
