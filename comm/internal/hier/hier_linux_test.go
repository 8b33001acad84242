package hier_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/testing/simulation"
	"github.com/gorun/gorun/env/testing/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testkit.OwnSettings(m)) }

// placements returns every way to put members on nodes: the node of each. Nodes are numbered as they come.
func placements(size int) (all [][]int) {
	var extend func(nodes []int, used int)
	extend = func(nodes []int, used int) {
		if len(nodes) == size {
			all = append(all, nodes)
			return
		}
		for node := range used + 1 {
			extend(append(nodes[:len(nodes):len(nodes)], node), max(used, node+1))
		}
	}
	extend(nil, 0)
	return all
}

// TestEveryCallInEveryPlacement: every collective leaves what it must, wherever members are, by one rail and by several,
// in one piece and in several that overlap.
func TestEveryCallInEveryPlacement(t *testing.T) {
	testkit.WithoutRace(t)
	for _, nodes := range append(placements(testkit.UnlessShort(5, 4)), []int{2, 0, 0, 1, 2, 0, 1}, []int{0, 0, 0, 1, 1, 1}, []int{0, 1, 1, 1, 1}) {
		for i, tuning := range []string{"nodes=leaders", "nodes=rails"} {
			for _, pieces := range []bool{false, true} {
				c := simulation.Config{Size: len(nodes), Nodes: nodes, Tuning: tuning}
				if pieces {
					c.ChunkSize, c.Overlap = 500, true
				}
				everyCall(t, c, i)
			}
		}
	}
}

// everyCall makes every call in a world, with each member as the root.
func everyCall(t *testing.T, c simulation.Config, salt int) {
	t.Helper()
	w := simulation.New(t, c)
	defer w.Close()
	for _, err := range w.Run(func(g *core.Group) error {
		for _, kind := range simulation.Kinds {
			for _, count := range []int{0, 1, 37, 900} {
				x := simulation.Call{Kind: kind, Count: count, Salt: salt + count, InPlace: count%2 == 1, Ordered: count == 37}
				roots := 1
				if kind.HasRoot() {
					roots = g.Size()
				}
				for x.Root = range roots {
					again := x // the same call between other buffers
					again.Salt += 3
					if err := (simulation.Program{x, again}).Run(context.Background(), g); err != nil {
						return err
					}
				}
			}
		}
		return nil
	}) {
		if err != nil {
			t.Errorf("%v: %v", c, err)
		}
	}
}

// faults are what becomes of a member instead of a call.
var faults = map[string]func(w *simulation.World, g *core.Group){
	"dies":   func(w *simulation.World, g *core.Group) { w.Kill(g.Rank()) },
	"leaves": func(_ *simulation.World, g *core.Group) { g.Comm.Close() },
	"aborts": func(_ *simulation.World, g *core.Group) { g.Abort(errors.New("enough")) },
}

// TestAMemberThatFails: whatever members in memory and by messages wait for, and whatever becomes of one of them, each
// has its results, or an error that names that member.
func TestAMemberThatFails(t *testing.T) {
	testkit.WithoutRace(t)
	worlds := newCrowd(t)
	for i, nodes := range [][]int{{0, 0, 0, 0}, {0, 1, 0, 1}, {0, 0, 1, 2}, {1, 0, 0, 0}} {
		for name, fault := range faults {
			for at, kind := range simulation.Kinds {
				victim := (at + i) % len(nodes)
				c := simulation.Config{Size: len(nodes), Nodes: nodes, ChunkSize: 4000, Overlap: at%2 == 0, Tuning: []string{"nodes=leaders", "nodes=rails"}[at%2]}
				failing := simulation.Call{Kind: kind, Count: 3000}
				if kind.HasRoot() {
					failing.Root = at % c.Size
				}
				worlds.add(c, func(w *simulation.World) {
					for r, err := range w.Run(func(g *core.Group) error {
						first := simulation.Program{{Kind: call.KindBarrier}, {Kind: call.KindAllReduce, Count: 7}}
						if err := first.Run(t.Context(), g); err != nil {
							return err
						}
						if g.Rank() == victim {
							fault(w, g)
							return nil
						}
						return simulation.Program{failing, {Kind: call.KindBarrier}}.Run(t.Context(), g)
					}) {
						if r != victim && !simulation.Names(err, victim) {
							t.Errorf("%v: member %d %s instead of %v: member %d got %v", c, victim, name, failing, r, err)
						}
					}
				})
			}
		}
	}
	worlds.Wait()
}

// A crowd is worlds that run at the same time, as they mostly wait.
type crowd struct {
	sync.WaitGroup
	t       *testing.T
	running chan struct{}
}

func newCrowd(t *testing.T) *crowd { return &crowd{t: t, running: make(chan struct{}, 40)} }

func (c *crowd) add(config simulation.Config, body func(w *simulation.World)) {
	w := simulation.New(c.t, config)
	c.running <- struct{}{}
	c.Go(func() {
		body(w)
		w.Close()
		<-c.running
	})
}

// TestAMemberThatMakesAnotherCall: no member gets a wrong result without an error, and every one learns that calls differ.
func TestAMemberThatMakesAnotherCall(t *testing.T) {
	testkit.WithoutRace(t)
	const odd = 1
	worlds := newCrowd(t)
	for _, nodes := range [][]int{{0, 0, 0}, {0, 0, 1}, {0, 1, 0}} {
		for _, kind := range simulation.Kinds {
			for _, count := range []int{6, 3000} {
				usual := simulation.Call{Kind: kind, Count: count}
				for _, strange := range usual.Deviations() {
					worlds.add(simulation.Config{Size: len(nodes), Nodes: nodes}, func(w *simulation.World) {
						for r, err := range w.Run(func(g *core.Group) error {
							p := simulation.Program{{Kind: call.KindBarrier}, usual, {Kind: call.KindBarrier}, {Kind: call.KindAllReduce, Count: 1}}
							if g.Rank() == odd {
								p[1] = strange
							}
							return errors.Join(p.Run(t.Context(), g), g.Compare())
						}) {
							f, ok := errors.AsType[*diagnosis.Failure](err)
							if !ok || f.Kind != diagnosis.Mismatched {
								t.Errorf("%v, nodes %v, member %d calls %v: member %d got %v, want a mismatch", usual, nodes, odd, strange, r, err)
							}
						}
					})
				}
			}
		}
	}
	worlds.Wait()
}
