package node

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/internal/store"
	"github.com/gorun/gorun/rendezvous/internal/store/storetest"
)

// work joins until the job is closed: workers fail in every round until one restart is used, and then succeed. It
// returns the rounds that it has been in, and how the job ended.
func (a *agent) work(t *testing.T) (rounds []*rendezvous.Round, err error) {
	for {
		round, err := a.join()
		if err != nil {
			return rounds, err
		}
		rounds = append(rounds, round)
		var f *rendezvous.Failure
		if round.Restarts == 0 {
			f = failure(a, round.Self, 3)
		}
		a.report(round, f)
		if err := over(t, round); !errors.Is(err, rendezvous.ErrNewRound) {
			return rounds, err
		}
	}
}

// TestLeaderDies kills the leader before and after everything that it writes. The others finish the job, and everything
// is decided once.
func TestLeaderDies(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	client := server.client()
	for _, what := range []string{"campaign", "form", "end", "close"} {
		for _, when := range []string{"before", "after"} {
			point := when + " " + what
			t.Run(point, func(t *testing.T) {
				t.Parallel()
				j := newJob(t, client, 2, 3)
				j.config.LastCall = short // one may die before the first round
				var dead atomic.Bool
				died := make(chan struct{})
				decided := decisions{keysOf(DefaultPrefix, j.config.RunID), server.memory}

				agents := make([]*agent, 3)
				for i := range agents {
					self := make(chan *agent, 1)
					agents[i] = j.agent(fmt.Sprint("n", i), func(c *Config) {
						c.Store = mortal{client, func(at string) bool {
							first := at == point && dead.CompareAndSwap(false, true)
							if first {
								(<-self).driver.cancel()
								close(died)
							}
							return first
						}}
					})
					self <- agents[i]
				}
				rounds, ends := make([][]*rendezvous.Round, 3), make([]error, 3)
				var all sync.WaitGroup
				for i, a := range agents {
					all.Go(func() { rounds[i], ends[i] = a.work(t) })
				}
				all.Wait()
				select {
				case <-died: // of the last write, perhaps after all have heard of it
				case <-time.After(patience):
					t.Fatal("nobody has died")
				}
				victims := 0
				seen := make(map[int]string)
				for i, a := range agents {
					if a.driver.ctx.Err() != nil {
						a.kill()
						victims++
					} else if o := closed(t, ends[i]); o != (rendezvous.Outcome{}) {
						t.Errorf("%s: the job ended with %+v, want success", a.node.ID, o)
					}
					for _, r := range rounds[i] {
						if seen[r.ID] == "" {
							seen[r.ID] = show(r)
						}
						if seen[r.ID] != show(r) {
							t.Errorf("round %d is %s, and %s", r.ID, seen[r.ID], show(r))
						}
					}
				}
				if victims != 1 {
					t.Errorf("%d agents have died, want one", victims)
				}
				decided.check(t)
			})
		}
	}
}

// A mortal store's user may die before and after what a leader writes: dies tells, and what it is told of does not happen.
type mortal struct {
	store.Store
	dies func(at string) bool
}

func (m mortal) Commit(ctx context.Context, t store.Txn) (store.Answer, error) {
	what := ""
	for _, p := range t.Puts {
		switch {
		case strings.HasSuffix(p.Key, "/job/leader"):
			what = "campaign"
		case strings.HasSuffix(p.Key, "/job/state"):
			what = "close"
		case strings.HasSuffix(p.Key, "/job/current"):
			what = "end"
		case strings.Contains(p.Key, "/rounds/"):
			what = "form"
		}
	}
	if m.dies("before " + what) {
		return store.Answer{}, context.Canceled
	}
	answer, err := m.Store.Commit(ctx, t)
	m.dies("after " + what)
	return answer, err
}

// decisions are all that leaders have written for a job.
type decisions struct {
	keys   keys
	memory *storetest.Memory
}

// check wants every round to be written once, in order, with the pointer to it; no round to be over twice, unless the second
// time is free of charge and the first was not; restarts to go up by one at most; and nothing to follow the end.
func (d *decisions) check(t *testing.T) {
	t.Helper()
	round, over, restarts := 0, true, 0
	all, _, _ := d.memory.Since(0, store.Below(d.keys.root))
	for len(all) > 0 {
		events := all
		if next := slices.IndexFunc(all, func(e store.Event) bool { return e.Written > all[0].Written }); next > 0 {
			events = all[:next]
		}
		all = all[len(events):]
		written := make(map[string]bool) // keys, and those of rounds without what is behind the number
		for _, e := range events {
			if !e.Deleted {
				written[e.Key], written[path.Dir(e.Key)+"/"] = true, true
			}
		}
		for _, e := range events {
			if e.Deleted {
				continue
			}
			switch key := e.Key; {
			case key == d.keys.state():
				return
			case key == d.keys.current():
				now, err := decode[currentDoc](e.KV)
				if err != nil {
					t.Fatal(err)
				}
				switch {
				case now.Over == nil && over && now.Round == round+1 && written[d.keys.roundOf(now.Round)]:
				case now.Over != nil && over && now.Round == round && now.Over.Restarts < restarts: // a node was lost
					restarts = now.Over.Restarts
				case now.Over != nil && !over && now.Round == round && now.Over.Restarts-restarts <= 1:
					restarts = now.Over.Restarts
				default:
					t.Errorf("round %d, over: %t, is followed by round %d, %+v", round, over, now.Round, now.Over)
				}
				round, over = now.Round, now.Over != nil
			case strings.HasPrefix(key, d.keys.rounds()) && !written[d.keys.current()]:
				t.Errorf("%s is written without the pointer to it", key)
			}
		}
	}
	t.Error("the job has not been closed")
}

// TestEveryLeaderDies: one after the other, in the middle of a round, until one is left.
func TestEveryLeaderDies(t *testing.T) {
	t.Parallel()
	j := newJob(t, startServer(t).client(), 1, 5)
	agents := j.agents(5)
	for n := range 4 {
		rounds := together(t, agents)
		leader := j.leader(t)
		rest := agents[:0:0]
		var left []*rendezvous.Round
		for i, a := range agents {
			if a.key() == leader {
				a.kill()
			} else {
				rest, left = append(rest, a), append(left, rounds[i])
			}
		}
		if len(rest) != len(agents)-1 {
			t.Fatalf("leader %s is none of %d agents", leader, len(agents))
		}
		wantNewRound(t, left)
		agents = rest
		if r := left[0]; r.ID != n+1 || r.Restarts != 0 {
			t.Errorf("round %s", show(r))
		}
	}
	if r := together(t, agents)[0]; fmt.Sprint(r.Size, r.ID) != "1 5" {
		t.Errorf("the last round is %s", show(r))
	}
}

// leader is the key of the job's.
func (j *job) leader(t *testing.T) string {
	t.Helper()
	doc, err := decode[leaderDoc](j.server.memory.Get(keysOf(DefaultPrefix, j.config.RunID).leader()))
	if err != nil {
		t.Fatal(err)
	}
	return doc.Key
}
