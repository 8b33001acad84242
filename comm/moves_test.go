package comm

import (
	"context"
	"fmt"
	"testing"
)

// TestLongCollectivesMove: while a long collective goes on in shared memory, whether that is all of it or a stage, one
// can see that it does.
func TestLongCollectivesMove(t *testing.T) {
	for _, placement := range []string{"shm", "halves"} {
		w := worldOver(t, placement, 4)
		w.run(func(ctx context.Context, g *Group) error {
			if err := Barrier(ctx, g); err != nil {
				return err
			}
			before := g.core.Moves()
			if err := AllReduce(ctx, g, make([]float32, 4<<20), Sum); err != nil {
				return err
			}
			if moves := g.core.Moves() - before; moves < 4 {
				return fmt.Errorf("over %s, rank %d moves %d times", placement, g.Rank(), moves)
			}
			return nil
		})
		w.close()
	}
}
