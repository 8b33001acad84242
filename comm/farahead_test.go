package comm

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/gorun/gorun/env/fulltest"
)

// No honest program comes to the limits of what may be sent before anybody wants it, however far ahead one rank is: with
// messages, with collectives, and with groups.
func TestARankFarAhead(t *testing.T) {
	onTransports(t, fulltest.Else([]string{"mem", "tcp", "shm", "mixed"}, []string{"tcp", "shm"}), func(t *testing.T, world func(int) *testWorld) {
		w := world(2)
		defer w.close()
		const messages, collectives, groups = 10_000, 2000, 20
		ahead := make(chan struct{})
		w.run(func(ctx context.Context, g *Group) error {
			if err := Barrier(ctx, g); err != nil { // ranks that share memory come to that together
				return err
			}
			var sent []*Work
			if g.Rank() == 1 {
				<-ahead
			} else {
				for i := range messages {
					sent = append(sent, ISend(g, []int{i}, 1))
				}
			}
			for i := range collectives {
				v := []int{i * (1 - g.Rank())}
				if err := Broadcast(ctx, g, v, 0); err != nil || v[0] != i {
					return fmt.Errorf("Broadcast %d brought %d: %w", i, v[0], err)
				}
				if g.Rank() == 0 && i == 50 {
					close(ahead)
				}
			}
			var made []*Group
			for i := range groups {
				sub, err := NewGroup(ctx, g, []int{0, 1})
				if err != nil {
					return err
				}
				made = append(made, sub)
				if g.Rank() == 0 {
					sent = append(sent, ISend(sub, []int{i}, 1))
				}
			}
			receive := func(g *Group, want int) error {
				v := []int{-1}
				if _, err := Recv(ctx, g, v, 0); err != nil || v[0] != want {
					return fmt.Errorf("got %d, want %d: %w", v[0], want, err)
				}
				return nil
			}
			if g.Rank() == 1 {
				for i := range messages {
					if err := receive(g, i); err != nil {
						return err
					}
				}
				for i, sub := range made {
					if err := receive(sub, i); err != nil {
						return err
					}
				}
			}
			var errs []error
			for _, s := range sent {
				errs = append(errs, s.Wait(ctx))
			}
			for _, sub := range made {
				errs = append(errs, sub.Close())
			}
			return errors.Join(errs...)
		})
	})
}
