package hier_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/gorun/gorun/comm/internal/core"
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
					if err := x.Do(g); err != nil {
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
