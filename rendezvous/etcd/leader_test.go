package etcd

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/gorun/gorun/rendezvous"
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
				decided := record(t, client, keysOf(DefaultPrefix, j.config.RunID))

				agents := make([]*agent, 3)
				for i := range agents {
					self := make(chan *agent, 1)
					agents[i] = j.agent(fmt.Sprint("n", i), func(c *Config) {
						c.Client = mortal(client, func(at string) bool {
							first := at == point && dead.CompareAndSwap(false, true)
							if first {
								(<-self).driver.cancel()
								close(died)
							}
							return first
						})
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

// mortal is a client whose user may die before and after what a leader writes: dies tells, and what it is told of does not happen.
func mortal(client *clientv3.Client, dies func(at string) bool) *clientv3.Client {
	c := clientv3.NewCtxClient(client.Ctx())
	c.KV, c.Lease, c.Watcher = mortalKV{client.KV, dies}, client.Lease, client.Watcher
	return c
}

type mortalKV struct {
	clientv3.KV
	dies func(at string) bool
}

func (kv mortalKV) Txn(ctx context.Context) clientv3.Txn {
	return &mortalTxn{Txn: kv.KV.Txn(ctx), dies: kv.dies}
}

type mortalTxn struct {
	clientv3.Txn
	dies func(at string) bool
	what string
}

func (t *mortalTxn) If(all ...clientv3.Cmp) clientv3.Txn {
	t.Txn.If(all...)
	return t
}

func (t *mortalTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	for _, op := range ops {
		key := string(op.KeyBytes())
		switch {
		case !op.IsPut():
		case strings.HasSuffix(key, "/job/leader"):
			t.what = "campaign"
		case strings.HasSuffix(key, "/job/state"):
			t.what = "close"
		case strings.HasSuffix(key, "/job/current"):
			t.what = "end"
		case strings.Contains(key, "/rounds/"):
			t.what = "form"
		}
	}
	t.Txn.Then(ops...)
	return t
}

func (t *mortalTxn) Else(ops ...clientv3.Op) clientv3.Txn {
	t.Txn.Else(ops...)
	return t
}

func (t *mortalTxn) Commit() (*clientv3.TxnResponse, error) {
	if t.dies("before " + t.what) {
		return nil, context.Canceled
	}
	answer, err := t.Txn.Commit()
	t.dies("after " + t.what)
	return answer, err
}

// decisions are all that leaders have written for a job.
type decisions struct {
	keys   keys
	cancel context.CancelFunc
	events clientv3.WatchChan
}

func record(t *testing.T, client *clientv3.Client, k keys) *decisions {
	ctx, cancel := context.WithCancel(context.Background())
	d := &decisions{keys: k, cancel: cancel, events: client.Watch(ctx, k.root, clientv3.WithPrefix(), clientv3.WithCreatedNotify())}
	t.Cleanup(cancel)
	if first := <-d.events; !first.Created {
		t.Fatalf("the watch begins with %+v", first)
	}
	return d
}

// check wants every round to be written once, in order, with the pointer to it; no round to be over twice, unless the second
// time is free of charge and the first was not; restarts to go up by one at most; and nothing to follow the end.
func (d *decisions) check(t *testing.T) {
	t.Helper()
	round, over, restarts := 0, true, 0
	for answer := range d.events {
		written := make(map[string]bool) // keys, and those of rounds without what is behind the number
		for _, e := range answer.Events {
			if e.Type == mvccpb.Event_PUT {
				written[string(e.Kv.Key)], written[path.Dir(string(e.Kv.Key))+"/"] = true, true
			}
		}
		for _, e := range answer.Events {
			if e.Type != mvccpb.Event_PUT {
				continue
			}
			switch key := string(e.Kv.Key); {
			case key == d.keys.state():
				d.cancel()
				return
			case key == d.keys.current():
				now, err := decode[currentDoc](e.Kv)
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
	key := keysOf(DefaultPrefix, j.config.RunID).leader()
	answer, err := j.client.Get(t.Context(), key)
	if err != nil || len(answer.Kvs) != 1 {
		t.Fatalf("%v, %v", answer, err)
	}
	doc, err := decode[leaderDoc](answer.Kvs[0])
	if err != nil {
		t.Fatal(err)
	}
	return doc.Key
}
