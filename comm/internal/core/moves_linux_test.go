package core_test

import (
	"fmt"
	"testing"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/testing/simulation"
)

// TestLongCollectivesMove: while a long collective goes on in shared memory, whether that is all of it or a stage, one
// can see that it does.
func TestLongCollectivesMove(t *testing.T) {
	for _, nodes := range [][]int{{0, 0, 0, 0}, {0, 0, 1, 1}} {
		c := simulation.Config{Size: 4, Nodes: nodes}
		w := simulation.New(t, c)
		for r, err := range w.Run(func(g *core.Group) error {
			if err := (simulation.Call{Kind: call.KindBarrier}).Do(g); err != nil {
				return err
			}
			before := core.MovesInMemory(g)
			if err := (simulation.Call{Kind: call.KindAllReduce, Count: 1 << 20}).Do(g); err != nil {
				return err
			}
			if moves := core.MovesInMemory(g) - before; moves < 4 {
				return fmt.Errorf("%d moves", moves)
			}
			return nil
		}) {
			if err != nil {
				t.Errorf("%v: member %d: %v", c, r, err)
			}
		}
		w.Close()
	}
}
