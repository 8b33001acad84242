package comm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/gorun/gorun/env/testing/testkit"
)

// No honest program comes to the limits of what may be sent before anybody wants it, however far ahead one rank is:
// with messages, with collectives, and with groups.
func TestARankFarAhead(t *testing.T) {
	testkit.WithoutRace(t)
	onTransports(t, testkit.UnlessShort([]string{"mem", "tcp", "shm", "mixed"}, []string{"tcp", "shm"}), func(t *testing.T, world func(int) *testWorld) {
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

// Collectives do not hang if their ranks have already sent each other, in other groups, all that they may send ahead.
func TestCollectivesOfRanksThatAreFarAhead(t *testing.T) {
	testkit.WithoutRace(t)
	const calls = 8192 // as many empty messages as the credit of a rank allows
	const size = 6
	synctest.Test(t, func(t *testing.T) {
		w := worldOver(t, "mem", size)
		defer w.close()
		ahead := make(chan struct{})
		var there sync.WaitGroup
		there.Add(size)
		go func() {
			there.Wait()
			synctest.Wait()
			close(ahead)
		}()
		w.run(func(ctx context.Context, g *Group) error {
			all, err := NewGroup(ctx, g, g.Ranks(), withRules("barrier=pairwise;all_gather=pairwise;all_reduce=pairwise;reduce=linear;broadcast=linear"))
			if err != nil {
				return err
			}
			var own *Group
			for r := range size { // each rank sends to those to which collectives send first
				three, err := NewGroup(ctx, g, []int{r, (r + 1) % size, (r + 2) % size}, withRules("broadcast=linear"))
				if err != nil {
					return err
				}
				if r == g.Rank() {
					own = three
				}
			}
			for range calls {
				IBroadcast[byte](own, nil, 0).Done() // so that Close does not report it
			}
			there.Done()
			<-ahead
			v := make([]int, size)
			return errors.Join(Barrier(ctx, all), AllGather(ctx, all, v, []int{1}), AllReduce(ctx, all, v, Sum), Reduce(ctx, all, v, Sum, 1), Broadcast(ctx, all, v, 1))
		})
	})
}
