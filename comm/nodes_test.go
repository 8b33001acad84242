package comm

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/gorun/gorun/env/testing/testkit"
)

// The ranks of each machine share memory, those that are alone on theirs do without, and so do groups of which all are.
func TestTeamsOnSeveralMachines(t *testing.T) {
	w := worldOver(t, "scattered", 6) // ranks 1 and 2, 0 and 4, 3, and 5 with 1 and 2
	check := func(when string, want int) {
		t.Helper()
		if got := mapped(t, "gorun"); got != want {
			t.Errorf("%s: %d pieces of memory are mapped, want %d", when, got, want)
		}
	}
	w.run(func(ctx context.Context, g *Group) error { return Barrier(ctx, g) })
	check("in the world", 5)
	for _, c := range []struct {
		ranks []int
		want  int
	}{{[]int{3, 4, 5}, 0}, {[]int{5, 3, 0, 1}, 2}, {[]int{2, 1, 5}, 3}} {
		groups := make([]*Group, len(w.groups))
		w.run(func(ctx context.Context, world *Group) error {
			g, err := NewGroup(ctx, world, c.ranks)
			if err != nil || g == nil {
				return err
			}
			groups[world.Rank()] = g
			sum := []int{1}
			if err := AllReduce(ctx, g, sum, Sum); err != nil || sum[0] != len(c.ranks) {
				return fmt.Errorf("got %v, %w", sum, err)
			}
			return nil
		})
		check(fmt.Sprintf("in a group of %v", c.ranks), 5+c.want)
		for _, g := range groups {
			if g == nil {
				continue
			}
			if err := g.Close(); err != nil {
				t.Error(err)
			}
		}
		check("without it", 5)
	}
	w.close()
	check("in the end", 0)
}

// Whether others wait for it in memory or for a message, or for somebody who does: all ranks name the one that does not
// call.
func TestAllNameTheRankThatDoesNotCallOnSeveralMachines(t *testing.T) {
	testkit.WithoutRace(t)
	t.Parallel()
	const size = 5
	var all sync.WaitGroup // at the same time: they do little but wait
	for _, placement := range []string{"one pair", "scattered"} {
		for culprit := range size {
			all.Go(func() {
				t.Run(fmt.Sprintf("%s, rank %d", placement, culprit), func(t *testing.T) {
					w := worldOver(t, placement, size)
					defer w.close()
					for r, err := range w.results(func(ctx context.Context, g *Group) error {
						if err := Barrier(ctx, g); err != nil {
							return err
						}
						g.core.Timeout = 5 * time.Second
						if g.Rank() == culprit {
							return nil
						}
						return AllReduce(ctx, g, make([]float32, 100_000), Sum)
					}) {
						if r != culprit {
							wantPeerError(t, r, err, culprit, "has not called AllReduce #2: its last call was Barrier #1")
						}
					}
				})
			})
		}
	}
	all.Wait()
}

// Its stages are one collective to who looks at what a rank has done.
func TestTheFlightOfAGroupOnSeveralMachines(t *testing.T) {
	w := worldOver(t, "halves", 4)
	defer w.close()
	const n = 100_000 // so that there are two rails
	w.run(func(ctx context.Context, g *Group) error {
		if err := Barrier(ctx, g); err != nil {
			return err
		}
		return AllReduce(ctx, g, make([]int64, n), Sum)
	})
	for r, g := range w.groups {
		calls := g.Flight().Collectives
		// Of its 8n bytes a rank shows the other one's slice there, exchanges its own with the other node, and shows
		// that here.
		if len(calls) != 2 || calls[1].State != "done" || calls[1].Sent != 8*n/2*3 || calls[1].Received < 8*n {
			t.Errorf("rank %d: %+v", r, calls)
		}
	}
}

// Between machines a broadcast goes by the way that is chosen, which Explain names: root sends to all others, or to one
// neighbour.
func TestBroadcastBetweenMachinesGoesByTheChosenWay(t *testing.T) {
	const size, n = 6, 10_000
	w := worldOver(t, "scattered", size) // on three machines; rank 4 is on that of root, and takes its copy from memory
	defer w.close()
	for way, messages := range map[string]uint64{"binomial": 2, "pipeline": 1} {
		w.run(func(ctx context.Context, world *Group) error {
			g, err := NewGroup(ctx, world, world.Ranks(), withRules("broadcast="+way))
			if err != nil {
				return err
			}
			buf := make([]byte, n)
			if g.Rank() == 0 {
				buf[n-1] = 1
			}
			if err := Broadcast(ctx, g, buf, 0); err != nil || buf[n-1] != 1 {
				return fmt.Errorf("%s: got %d, %w", way, buf[n-1], err)
			}
			calls := g.Flight().Collectives
			if sent := calls[len(calls)-1].Sent; g.Rank() == 0 && sent != (messages+1)*n {
				return fmt.Errorf("%s: root has sent %d bytes, want %d", way, sent, (messages+1)*n)
			}
			return nil
		})
	}
}
