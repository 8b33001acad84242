package comm

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// Two ranks that both believe to be the root are done at once, and never meet again: they find out when they close the
// group, each of them, and the world with its groups.
func TestTwoRootsAreFoundAtClose(t *testing.T) {
	onTransports(t, []string{"tcp", "shm"}, func(t *testing.T, world func(int) *testWorld) {
		for _, length := range []int{1, 3000} {
			for i := range 10 {
				w := world(2)
				parts := make([]*Group, 2)
				w.run(func(ctx context.Context, g *Group) (err error) {
					if parts[g.Rank()], err = NewGroup(ctx, g, []int{1, 0}); err == nil {
						err = Barrier(ctx, parts[g.Rank()])
					}
					return err
				})
				errs := w.results(func(ctx context.Context, g *Group) error {
					return Broadcast(ctx, parts[g.Rank()], make([]int, length), parts[g.Rank()].Rank())
				})
				groups := parts
				if i%2 == 0 && w.shared {
					groups = w.groups
				}
				for r, g := range groups {
					if _, ok := errors.AsType[*MismatchError](errors.Join(errs[r], g.Close())); !ok {
						t.Errorf("rank %d, %d elements: has found nothing", r, length)
					}
					if err := g.Close(); err != nil {
						t.Errorf("rank %d, once more: %v", r, err)
					}
				}
				w.run(func(_ context.Context, g *Group) error {
					_ = g.Close()
					return nil
				})
			}
		}
	})
}

// A message of another type than its receive fails alone, and the group goes on: if its collectives differ later, ranks
// still find that out when they close it.
func TestTwoRootsAreFoundAtCloseAfterAMessageOfAnotherType(t *testing.T) {
	onTransports(t, []string{"tcp", "shm"}, func(t *testing.T, world func(int) *testWorld) {
		w := world(2)
		errs := w.results(func(ctx context.Context, g *Group) error {
			if g.Rank() == 0 {
				if err := Send(ctx, g, make([]int64, 1), 1); err != nil {
					return err
				}
			} else if _, err := Recv(ctx, g, make([]int32, 1), 0); ExitCode(err) != 2 {
				return fmt.Errorf("another type: got %w", err)
			}
			if err := Barrier(ctx, g); err != nil {
				return err
			}
			if err := Broadcast(ctx, g, make([]int, 1), g.Rank()); err != nil { // both are the root, and done at once
				return errors.Join(err, g.Close())
			}
			return nil
		})
		for r, g := range w.groups {
			if _, ok := errors.AsType[*MismatchError](errors.Join(errs[r], g.Close())); !ok {
				t.Errorf("rank %d has found nothing: %v", r, errs[r])
			}
		}
	})
}
