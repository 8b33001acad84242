package core_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/choice"
	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/testing/simulation"
	"github.com/gorun/gorun/env/testing/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testkit.OwnSettings(m)) }

// kindsOf are the calls that an operation's algorithm carries out; those of "" have only one.
var kindsOf = map[string][]call.Kind{
	"all_reduce":     {call.KindAllReduce, call.KindAllReduceCoalesced},
	"reduce":         {call.KindReduce},
	"broadcast":      {call.KindBroadcast},
	"all_gather":     {call.KindAllGather, call.KindAllGatherV},
	"reduce_scatter": {call.KindReduceScatter, call.KindReduceScatterV},
	"all_to_all":     {call.KindAllToAll},
	"gather":         {call.KindGather},
	"scatter":        {call.KindScatter},
	"barrier":        {call.KindBarrier},
	"":               {call.KindScan, call.KindExScan, call.KindGatherV, call.KindScatterV, call.KindAllToAllV},
}

// TestEveryCallByEveryAlgorithm: every collective leaves what it must, by messages of every algorithm, for numbers of
// members that are powers of two and that are not, in one chunk and in many.
func TestEveryCallByEveryAlgorithm(t *testing.T) {
	testkit.WithoutRace(t)
	for op, kinds := range kindsOf {
		ways := []string{""}
		if op != "" {
			ways = nil
			for _, way := range choice.Messages.Free(op) {
				ways = append(ways, op+"="+string(way))
			}
		}
		for _, way := range ways {
			t.Run(way, func(t *testing.T) {
				for _, size := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 17} {
					chunk := []int{0, 400}[size%2]
					everyCall(t, simulation.Config{Size: size, ChunkSize: chunk, Tuning: way}, kinds)
				}
			})
		}
	}
}

// everyCall makes calls of the given kinds in a world.
func everyCall(t *testing.T, c simulation.Config, kinds []call.Kind) {
	t.Helper()
	w := simulation.New(t, c)
	defer w.Close()
	for _, err := range w.Run(func(g *core.Group) error {
		for _, kind := range kinds {
			for _, count := range []int{0, 1, 3, 130, 4099} {
				x := simulation.Call{Kind: kind, Count: count, Salt: count, InPlace: count%2 == 1}
				if count > 1000 && g.Size() > 9 {
					continue // it takes long, and shows no more than with fewer members
				}
				for _, x.Root = range []int{0, g.Size() - 1, g.Size() / 2} {
					if !kind.HasRoot() && x.Root > 0 {
						break
					}
					x.Ordered = x.Reduces() && x.Root == g.Size()-1
					if err := x.Do(g); err != nil {
						return err
					}
				}
				x.Root, x.Ordered = 0, true
				if x.Reduces() {
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
