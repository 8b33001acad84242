package comm

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gorun/gorun/comm/internal/choice"
	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/env/testing/testkit"
)

// Case 112 of the reference: a random program gives on every rank what a sequential model gives.
func TestRandomPrograms(t *testing.T) {
	always := func(step, *Group) (bool, error) { return false, nil }
	each := testkit.UnlessShort(uint64(8), 4) // on each transport
	for seed := range 5 * each {
		size := 1 + int(seed%8)
		p := newProgram(seed, size, 40)
		run := func(t *testing.T, transport string) {
			w := worldOver(t, transport, size)
			defer w.close()
			w.run(func(ctx context.Context, g *Group) error { return p.run(ctx, g, always) })
		}
		if seed < 4*each {
			transport := []string{"tcp", "tls", "shm", onSeveralMachines[seed%uint64(len(onSeveralMachines))]}[seed/each]
			t.Run(fmt.Sprintf("seed %d over %s", seed, transport), func(t *testing.T) { run(t, transport) })
			continue
		}
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { run(t, "mem") })
		})
	}
}

// The same holds if groups are tuned: by any way of each operation.
func TestRandomProgramsOfAnyWay(t *testing.T) {
	testkit.WithoutRace(t)
	for seed := range testkit.UnlessShort(uint64(96), 24) {
		size := 2 + int(seed%6)
		rng := rand.New(rand.NewPCG(seed, 2))
		var rules []string
		for _, op := range []string{"all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all", "gather", "scatter", "barrier"} {
			ways := plan.Ways.Free(op)
			rules = append(rules, op+"="+ways[rng.IntN(len(ways))])
		}
		world := append([]string{"mem", "chunks"}, onSeveralMachines...)[seed%uint64(2+len(onSeveralMachines))]
		t.Run(fmt.Sprintf("seed %d over %s by %s", seed, world, rules), func(t *testing.T) {
			tuning, err := choice.Parse(strings.Join(rules, ";"), plan.Ways)
			if err != nil {
				t.Fatal(err)
			}
			w := worldOver(t, world, size)
			defer w.close()
			for _, g := range w.groups {
				g.core.Choices().Tuning = tuning
			}
			p := newProgram(seed, size, 60)
			w.run(func(ctx context.Context, g *Group) error {
				return p.run(ctx, g, func(step, *Group) (bool, error) { return false, nil })
			})
		})
	}
}

// faults are what may become of a rank in the middle of a program. Each gives the error with which the rank itself
// ends.
var faults = map[string]func(ctx context.Context, w *testWorld, g *Group) error{
	"killed": func(_ context.Context, w *testWorld, g *Group) error {
		w.mortal[g.world.Rank].Kill()
		return nil
	},
	"stopped": func(_ context.Context, w *testWorld, g *Group) error {
		w.mortal[g.world.Rank].Stop()
		return nil
	},
	"calls no more": func(context.Context, *testWorld, *Group) error { return nil },
	"leaves":        func(_ context.Context, w *testWorld, g *Group) error { return w.groups[g.world.Rank].Close() },
	"aborts": func(_ context.Context, _ *testWorld, g *Group) error {
		g.Abort(errors.New("enough"))
		return nil
	},
	"calls another": func(ctx context.Context, _ *testWorld, g *Group) error {
		return ReduceScatter(ctx, g, make([]int16, 77), make([]int16, 77*g.Size()), BitXor)
	},
}

// Every rank ends with the right results, or with an error that names the rank at fault, or one that has ended because
// of it: a rank that fails leaves.
func TestRandomProgramsWithFaults(t *testing.T) {
	for name, fault := range faults {
		for seed := range testkit.UnlessShort(uint64(12), 3) {
			t.Run(fmt.Sprintf("%s, seed %d", name, seed), func(t *testing.T) {
				const size = 5
				rng := rand.New(rand.NewPCG(seed, 1))
				victim, when := rng.IntN(size), rng.IntN(30)
				p := newProgram(seed, size, 40)
				inBubble(t, size, func(t *testing.T, w *testWorld) {
					defer w.mortal[victim].Kill() // lets a stopped one's goroutines end
					wantVictimNamed(t, w, p, victim, when, fault)
				})
			})
		}
	}
}

// culprits are the ranks that err names.
func culprits(err error) []int {
	var (
		peer     *PeerError
		abort    *AbortError
		mismatch *MismatchError
		missing  *MissingRanksError
		deadlock *DeadlockError
		ranks    []int
	)
	switch {
	case errors.As(err, &peer):
		return []int{peer.Rank}
	case errors.As(err, &abort):
		return []int{abort.Rank}
	case errors.As(err, &missing):
		return missing.Missing
	case errors.As(err, &mismatch):
		for _, c := range mismatch.Calls {
			ranks = append(ranks, c.Rank)
		}
	case errors.As(err, &deadlock):
		for _, w := range deadlock.Waits {
			ranks = append(ranks, w.Rank)
		}
	}
	return ranks
}

func anyIn(ranks []int, set map[int]bool) bool {
	for _, r := range ranks {
		if set[r] {
			return true
		}
	}
	return false
}
