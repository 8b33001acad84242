package comm

import (
	"context"
	"errors"
	"testing"
)

// TestCloseDuringCalls: other goroutines call on a group until it is closed. Close compares calls before that, and must not count as one:
// the other ranks, which are in the same calls, would take them for others.
func TestCloseDuringCalls(t *testing.T) {
	onEveryTransport(t, func(t *testing.T, world func(int) *testWorld) {
		w := world(3)
		for r, err := range w.results(func(ctx context.Context, g *Group) error {
			for call := 0; ; call++ {
				if call == 10 && g.Rank() == 0 {
					if err := g.core.Compare(); err != nil { // what Close does while none of the calls is under way
						return err
					}
				}
				if call == 20 && g.Rank() == 0 {
					return g.Close()
				}
				if err := Barrier(ctx, g); err != nil {
					return err
				}
			}
		}) {
			if died, ok := errors.AsType[*PeerError](err); r != 0 && (!ok || died.Rank != 0) || r == 0 && err != nil {
				t.Errorf("rank %d: %v, want that rank 0 has left", r, err)
			}
		}
		for _, g := range w.groups[1:] {
			if err := g.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}
