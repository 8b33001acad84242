package comm

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/gorun/gorun/comm/internal/bootstrap"
	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/env/testing/testkit"
)

// farWorld makes a world in a placement in which ranks have found out that the machines are far away from that of rank
// 0.
func farWorld(t testing.TB, placement string, size int) *testWorld {
	machines := machinesOf(placement, size)
	return worldAtDistances(t, machines, func(r int) core.Distance {
		if machines[r] == machines[0] {
			return core.Near
		}
		return core.Far
	})
}

func worldAtDistances(t testing.TB, machines []string, of func(rank int) core.Distance) *testWorld {
	distances := make([]core.Distance, len(machines))
	for r := range distances {
		distances[r] = of(r)
	}
	return newConfiguredWorld(t, testConfig(), transports["mem"](t, len(machines)), machines, func(w *bootstrap.World) {
		w.Distances = distances
	})
}

// All ranks choose the same, which is not what they choose nearby. They do so in all groups, unless those have a
// tuning.
func TestRanksOnFarMachinesTakeFewSteps(t *testing.T) {
	testkit.WithoutRace(t)
	for _, c := range []struct {
		world      string
		size       int
		tuning, op string
		bytes      int
		want       string
	}{
		{"apart", 4, "", "all_reduce", 64, "doubling"},
		{"far, apart", 4, "", "all_reduce", 64, "pairwise"},
		{"far, apart", 4, "", "all_reduce", 256 << 10, "pairwise"},
		{"far, apart", 4, "", "all_reduce", 512 << 10, "doubling"},
		{"far, apart", 4, "", "all_reduce", 64 << 20, "bidirectional"},
		{"far, apart", 2, "", "all_reduce", 2 << 20, "doubling"},
		{"far, apart", 2, "", "all_reduce", 64 << 20, "ring"},
		{"far, apart", 4, "all_reduce=ring", "all_reduce", 64, "ring"},
		{"far, apart", 4, "all_reduce@3=ring", "all_reduce", 64, "pairwise"},
		{"far, apart", 8, "", "broadcast", 64 << 10, "linear"},
		{"far, apart", 8, "", "broadcast", 16 << 20, "pipeline"},
		{"far, apart", 8, "", "barrier", 0, "pairwise"},
		{"apart", 8, "", "barrier", 0, "dissemination"},
		{"far, scattered", 7, "", "all_reduce", 1 << 10, "leaders pairwise"},
		{"far, scattered", 7, "", "all_reduce", 64 << 20, "rails bidirectional"},
		{"far, scattered", 7, "all_reduce=halving", "all_reduce", 1 << 10, "leaders halving"},
	} {
		t.Run(fmt.Sprint(c.world, c.size, c.tuning, c.op, c.bytes), func(t *testing.T) {
			w := worldOver(t, c.world, c.size)
			defer w.close()
			w.run(func(ctx context.Context, world *Group) error {
				g, err := NewGroup(ctx, world, world.Ranks(), withRules(c.tuning))
				if err != nil {
					return err
				}
				if text := g.Explain(c.op, c.bytes); picked(text) != c.want {
					return fmt.Errorf("it says\n%swant %q", text, c.want)
				}
				sum := make([]int32, min(max(c.bytes/4, 3000), 1<<20))
				for i := range sum {
					sum[i] = int32(i)
				}
				if err := AllReduce(ctx, g, sum, Sum); err != nil {
					return err
				}
				for i, got := range sum {
					if int(got) != i*c.size {
						return fmt.Errorf("element %d is %d, want %d", i, got, i*c.size)
					}
				}
				return nil
			})
		})
	}
}

// Ranks measure only how far away rank 0 is. So a group is far apart only if it has near members and far ones. All
// members choose the same.
func TestGroupsAreFarApartOnlyIfNearAndFar(t *testing.T) {
	distances := []core.Distance{core.Near, core.Near, core.Far, core.Far, core.Far, core.UnknownDistance}
	w := worldAtDistances(t, []string{"a", "b", "c", "d", "e", "e"}, func(r int) core.Distance { return distances[r] })
	defer w.close()
	for _, c := range []struct {
		ranks []int
		want  string
	}{
		{[]int{0, 2, 3}, "pairwise"},
		{[]int{4, 3, 1}, "pairwise"},
		{[]int{4, 3, 2}, "doubling"},
		{[]int{0, 1, 5}, "doubling"},
		{[]int{5, 2, 3}, "doubling"},
		{[]int{5, 4, 1}, "leaders pairwise"},
		{[]int{5, 4, 2}, "leaders doubling"},
	} {
		w.run(func(ctx context.Context, world *Group) error {
			g, err := NewGroup(ctx, world, c.ranks)
			if err != nil || g == nil {
				return err
			}
			if text := g.Explain("all_reduce", 64); picked(text) != c.want {
				return fmt.Errorf("%v: it says\n%swant %q", c.ranks, text, c.want)
			}
			sum := []int{1}
			if err := AllReduce(ctx, g, sum, Sum); err != nil || sum[0] != len(c.ranks) {
				return errors.Join(err, fmt.Errorf("got %d", sum[0]))
			}
			return g.Close()
		})
	}
}
