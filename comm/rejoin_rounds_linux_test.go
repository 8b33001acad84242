package comm

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gorun/gorun/env/testing/testkit"
)

// onNetworks runs test as a subtest for each way in which ranks reach each other.
func onNetworks(t *testing.T, names []string, test func(t *testing.T, network string)) {
	for _, network := range names {
		t.Run(network, func(t *testing.T) {
			t.Parallel()
			test(t, network)
		})
	}
}

// wantDead checks that r says that one of some ranks was killed.
func wantDead(t *testing.T, w *testWorker, r result, op string, ranks ...int) {
	t.Helper()
	if p := r.Peer; r.Kind != "peer" || !slices.Contains(ranks, p.Rank) || p.Death == nil || p.Death.ExitCode != -9 || op != "" && p.Op != op {
		t.Errorf("rank %d: %s: %s: %+v, want that one of %v was killed", w.rank, r.Command, r.Error, r.Peer, ranks)
	}
	if r.Took > testLimit/2 {
		t.Errorf("rank %d: %s: took %v", w.rank, r.Command, r.Took)
	}
}

// TestSeveralDie: also rank 0, which serves the store, and all but one.
func TestSeveralDie(t *testing.T) {
	testkit.WithoutRace(t)
	onNetworks(t, testkit.UnlessShort([]string{"shm", "tcp", "mixed"}, []string{"mixed"}), func(t *testing.T, network string) {
		a := newTestAgent(t, network, 5)
		a.join()
		for _, victims := range [][]int{{0}, {1, 4}, {0, 2, 3}, {1, 2, 3, 4}, {0, 1, 2, 3}} {
			a.begun("run", "AllReduce long")
			a.lose(victims...)
			for rank, r := range a.results() {
				wantDead(t, a.workers[rank], r, "AllReduce", victims...)
			}
			a.next(5)
			a.join()
		}
		a.all("close")
	})
}

// TestDeathsWhileOthersRejoin: of a survivor, of rank 0, and of a new worker in Init. The others call Rejoin again.
func TestDeathsWhileOthersRejoin(t *testing.T) {
	onNetworks(t, []string{"shm", "tcp"}, func(t *testing.T, network string) {
		a := newTestAgent(t, network, 4)
		a.join()
		for _, second := range []int{2, 0, 1} {
			a.lose(1)
			a.begin(4, func(rank int) bool { return second == 1 })
			for rank, w := range a.workers {
				if w != nil {
					fresh := !w.joined
					if w.join(); !fresh {
						w.entered(a.round)
					}
				} else if rank != 1 {
					t.Fatalf("rank %d is gone", rank)
				}
			}
			if second == 1 { // they may have met already
				a.results()
				a.begun("run", "Barrier")
			}
			a.lose(second)
			for rank, r := range a.results() {
				wantDead(t, a.workers[rank], r, "", second)
			}
			a.next(4)
			a.join()
		}
	})
}

// TestARoundEndsBeforeItIsEntered: Rejoin and Init say so, and a survivor that has slept over rounds enters the last one.
func TestARoundEndsBeforeItIsEntered(t *testing.T) {
	a := newTestAgent(t, "shm", 3)
	a.join()
	a.lose(1)
	a.next(3)
	a.lose(1)
	a.begun("rejoin")
	for rank, r := range a.results() {
		wantDead(t, a.workers[rank], r, "Rejoin", 1)
		if want := "comm: Rejoin: rank 1 (pid "; !strings.HasPrefix(r.Error, want) {
			t.Errorf("rank %d: %q, want %q", rank, r.Error, want)
		}
	}
	for range 20 {
		a.next(3)
		a.lose(1)
	}
	a.next(3)
	for rank, w := range a.workers {
		if rank != 1 {
			w.do("setenv", "COMM_TEST_AGAIN", "yes")
			w.result()
		}
	}
	a.join()
}

// TestTheTokenOfARoundIsPassedToInit: Rejoin takes that of the next round.
func TestTheTokenOfARoundIsPassedToInit(t *testing.T) {
	a := newTestAgent(t, "shm", 3, "COMM_TEST_PASSES_TOKEN=yes")
	a.join()
	for range 2 {
		a.lose(1)
		a.next(3)
		a.join()
	}
	a.all("close")
}

// TestSizesChange: without a failure, more ranks come, and fewer remain.
func TestSizesChange(t *testing.T) {
	onNetworks(t, []string{"shm", "tcp"}, func(t *testing.T, network string) {
		a := newTestAgent(t, network, 3)
		a.join()
		for _, size := range []int{5, 2, 1, 4} {
			a.begun("run", "Recv from any")
			a.over()
			for rank, r := range a.results() {
				if r.Kind != "over" || !strings.Contains(r.Error, "comm: Recv #") || !strings.HasSuffix(r.Error, fmt.Sprintf("gorun is forming another round: round %d is over", a.round)) {
					t.Errorf("rank %d: %s", rank, r.Error)
				}
			}
			a.next(size)
			a.join()
		}
	})
}

// TestOldGroups: a goroutine that is inside the old world when another one rejoins gets its error, and later calls on old groups do.
func TestOldGroups(t *testing.T) {
	testkit.WithoutRace(t)
	onNetworks(t, []string{"shm", "tcp"}, func(t *testing.T, network string) {
		a := newTestAgent(t, network, 4)
		a.join()
		for _, operation := range []string{"AllReduce long", "in place", "Recv from any", "I-forms", "several groups"} {
			a.begun("go", "run", operation)
			a.lose(victim)
			a.next(4)
			fresh := a.workers[victim]
			for _, w := range a.workers {
				w.join()
			}
			for _, w := range a.workers {
				results := []result{w.result()}
				if w != fresh {
					results = append(results, w.result())
				}
				for _, r := range results {
					switch {
					case r.Command != "run" && r.Error != "":
						t.Fatalf("rank %d: %s: %s", w.rank, r.Command, r.Error)
					case r.Command == "run" && r.Kind != "peer" && !strings.HasSuffix(r.Error, "the group is closed"):
						t.Errorf("rank %d: %s: %s", w.rank, operation, r.Error)
					}
				}
			}
			a.all("check")
			for _, w := range a.workers {
				if w == fresh {
					continue
				}
				for name := range operations {
					w.do("use old", name)
					if r := w.result(); !strings.HasPrefix(r.Error, "comm: ") || !strings.Contains(r.Error, "the group is closed") {
						t.Errorf("rank %d: %s on the old world: %q", w.rank, name, r.Error)
					}
				}
			}
			a.all("check")
		}
	})
}

// TestRejoinLeaksNothing: the footprint of a survivor of many rounds is that of one of few.
func TestRejoinLeaksNothing(t *testing.T) {
	testkit.WithoutRace(t)
	onNetworks(t, testkit.UnlessShort([]string{"shm", "tcp"}, []string{"shm"}), func(t *testing.T, network string) {
		a := newTestAgent(t, network, 3)
		a.join()
		survivor := a.workers[0]
		measure := func() (goroutines, descriptors, mappings, heap int) {
			survivor.do("footprint")
			r := survivor.result()
			if _, err := fmt.Sscan(r.Text, &goroutines, &descriptors, &mappings, &heap); err != nil {
				t.Fatalf("%s: %v", r.Text, err)
			}
			return goroutines, descriptors, mappings, heap
		}
		var goroutines, descriptors, mappings, heap int
		rejoins := testkit.UnlessShort(200, 40)
		for i := range rejoins {
			if i == 20 {
				goroutines, descriptors, mappings, heap = measure()
			}
			a.begun("run", "several groups")
			a.lose(1 + i%2)
			for rank, r := range a.results() {
				wantDead(t, a.workers[rank], r, "", 1+i%2)
			}
			a.next(3)
			a.join()
		}
		g, d, m, h := measure()
		t.Logf("after %d rejoins: %d goroutines (%d), %d descriptors (%d), %d mappings (%d), %d KiB heap (%d)", rejoins, g, goroutines, d, descriptors, m, mappings, h, heap)
		if g > goroutines+5 || d > descriptors+5 || m > mappings+3 || h > heap+4<<10 {
			t.Error("that is too much")
		}
	})
}

// TestTheAgentIsGone: a death is noticed without it, and Rejoin says at once that it is gone.
func TestTheAgentIsGone(t *testing.T) {
	onNetworks(t, []string{"shm", "tcp"}, func(t *testing.T, network string) {
		a := newTestAgent(t, network, 3)
		a.join()
		for _, w := range a.workers {
			w.socket.close()
		}
		a.begun("run", "AllReduce long")
		a.kill(victim)
		for rank, r := range a.results() {
			if r.Kind != "peer" || r.Peer.Rank != victim || r.Peer.Death != nil || r.Took > soon {
				t.Errorf("rank %d, after %v: %s", rank, r.Took, r.Error)
			}
		}
		a.begun("rejoin")
		for rank, r := range a.results() {
			if want := "comm: Rejoin: the agent has not said that round 1 is over, and the agent tells of no more rounds: "; !strings.HasPrefix(r.Error, want) || r.Code != 1 || r.Took > soon {
				t.Errorf("rank %d, after %v: %q (exit code %d), want %q", rank, r.Took, r.Error, r.Code, want)
			}
		}
	})
}
