package comm

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorun/gorun/env/testing/testkit"
)

// networks are the ways in which the ranks of rejoin's tests reach each other.
var networks = []string{"shm", "tcp", "tls", "mixed"}

// soon is how long a call may take to end after the agent has said that a rank has died, on a machine that is busy with other things. It is
// far below every timeout.
const soon = 15 * time.Second

// TestEveryOperationEndsWhenARankDies: all operations end at once, with an error that says who died of what. Then the survivors and a new
// rank go on.
func TestEveryOperationEndsWhenARankDies(t *testing.T) {
	testkit.WithoutRace(t)
	for n, network := range networks {
		t.Run(network, func(t *testing.T) {
			t.Parallel()
			a := newTestAgent(t, network, 4)
			a.join()
			var names []string
			for _, table := range []map[string]func(context.Context, *Group) error{operations, survivable} {
				for name := range table {
					names = append(names, name)
				}
			}
			slices.Sort(names)
			if testing.Short() { // half of them, each on one of the networks
				var some []string
				for i := n; i < len(names); i += 2 * len(networks) {
					some = append(some, names[i])
				}
				names = some
			}
			var took, rejoined []time.Duration
			for i, name := range names {
				var waiting []*testWorker
				for rank, w := range a.workers {
					if rank != victim || i%2 == 1 {
						w.do("run", name)
					}
					if rank != victim {
						waiting = append(waiting, w)
					}
				}
				time.Sleep(20 * time.Millisecond) // so that they are under way; they end the same way if they are not
				dead := a.workers[victim]
				died := time.Now()
				a.lose(victim)
				for _, w := range waiting {
					r := w.result()
					p := r.Peer
					if r.Kind != "peer" || p.Rank != victim || p.Host != hostname(t) || p.PID != dead.cmd.Process.Pid || p.Op == "" || p.Seq == 0 ||
						p.Death == nil || p.Death.ExitCode != -9 || !slices.Equal(p.Death.Stderr, []string{"last words"}) {
						t.Errorf("%s: rank %d got %s: %+v", name, w.rank, r.Error, p)
					}
					d := r.At.Sub(died)
					if took = append(took, d); d > soon {
						t.Errorf("%s: rank %d got %s after %v", name, w.rank, r.Error, d)
					}
				}
				a.next(4)
				for _, w := range a.workers {
					w.join()
				}
				for rank, r := range a.results() {
					if r.Error != "" {
						t.Fatalf("%s: rank %d in round %d: %s", name, rank, a.round, r.Error)
					}
					if rank != victim {
						rejoined = append(rejoined, r.Took)
					}
				}
				a.all("check")
			}
			slices.Sort(took)
			slices.Sort(rejoined)
			t.Logf("calls of survivors ended after %v (median), %v (longest); Rejoin took %v (median), %v (longest)",
				took[len(took)/2], took[len(took)-1], rejoined[len(rejoined)/2], rejoined[len(rejoined)-1])
			a.all("close")
			for rank, w := range a.workers {
				for line := range strings.Lines(w.stderr.String()) {
					if !strings.Contains(line, " waits for ") { // where the machine is busy
						t.Errorf("rank %d says %s", rank, line)
					}
				}
			}
		})
	}
}

// TestRejoinInAStore: a world whose ranks have met in a store of their own is still that of the round, whose agent says
// who has died, and the next one meets in the same way.
func TestRejoinInAStore(t *testing.T) {
	testkit.WithoutRace(t)
	a := newTestAgent(t, "store", 3, "COMM_TEST_STORE="+filepath.Join(t.TempDir(), "store"))
	a.join()
	for range 2 {
		for rank, w := range a.workers {
			if rank != victim {
				w.do("run", "Recv")
			}
		}
		survivors := slices.Delete(slices.Clone(a.workers), victim, victim+1)
		a.lose(victim)
		for _, w := range survivors {
			if r := w.result(); r.Kind != "peer" || r.Peer.Rank != victim || r.Peer.Death == nil {
				t.Errorf("rank %d got %s", w.rank, r.Error)
			}
		}
		a.next(3)
		for _, w := range a.workers {
			w.join()
		}
		for rank, r := range a.results() {
			if r.Error != "" {
				t.Fatalf("rank %d in round %d: %s", rank, a.round, r.Error)
			}
		}
		a.all("check")
	}
	a.all("close")
}
