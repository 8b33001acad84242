package comm

import (
	"context"
	"fmt"
	"testing"
)

// A blocking Send or Recv, and whatever a collective does with its peers, allocate nothing once they have been done before.
func TestSendingAndReceivingAllocateNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector lets pools forget")
	}
	for _, n := range []int{0, 8, 1 << 10, 64 << 10, 1 << 20} { // eager, and asked for
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			w := newTestWorld(t, transports["tcp"](t, 2))
			defer w.close()
			const rounds = 100
			w.run(func(ctx context.Context, g *Group) error {
				buf, peer := make([]byte, n), 1-g.Rank()
				turn := func() error {
					if g.Rank() == 0 {
						if err := Send(ctx, g, buf, peer); err != nil {
							return err
						}
					}
					if _, err := Recv(ctx, g, buf, peer); err != nil {
						return err
					}
					if g.Rank() == 1 {
						return Send(ctx, g, buf, peer)
					}
					return nil
				}
				for range rounds {
					if err := turn(); err != nil {
						return err
					}
				}
				var err error
				measured := func() {
					if err == nil {
						err = turn()
					}
				}
				if g.Rank() == 1 { // AllocsPerRun counts what both ranks allocate
					for range rounds + 1 {
						measured()
					}
					return err
				}
				if allocs := testing.AllocsPerRun(rounds, measured); allocs >= 1 {
					t.Errorf("a message of %d bytes there and back takes %v allocations", n, allocs)
				}
				return err
			})
		})
	}
}
