package core_test

import (
	"fmt"
	"testing"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/testing/simulation"
)

// TestCallsBindTheirThread: each call binds the thread that carries it out, and unbinds it at its end, in shared memory
// and by messages.
func TestCallsBindTheirThread(t *testing.T) {
	for _, nodes := range [][]int{{0, 0}, {0, 1}} {
		w := simulation.New(t, simulation.Config{Size: 2, Nodes: nodes})
		for r, err := range w.Run(func(g *core.Group) error {
			binds, bound := 0, 0
			g.World.Bind = func() (unbind func()) {
				binds, bound = binds+1, bound+1
				return func() { bound-- }
			}
			for i := range 3 {
				if err := (simulation.Call{Kind: call.KindBarrier}).Do(g); err != nil || binds != i+1 || bound != 0 {
					return fmt.Errorf("call %d: %w: bound %d times, and %d times still", i, err, binds, bound)
				}
			}
			return nil
		}) {
			if err != nil {
				t.Errorf("nodes %v: member %d: %v", nodes, r, err)
			}
		}
		w.Close()
	}
}
