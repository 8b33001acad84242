package comm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/gorun/gorun/env/testing/testkit"
)

func TestGroupRanks(t *testing.T) {
	onEveryTransport(t, func(t *testing.T, world func(int) *testWorld) {
		w := world(6)
		defer w.close()
		w.run(func(ctx context.Context, g *Group) error {
			sub, err := NewGroup(ctx, g, []int{5, 1, 3}) // the order given is kept
			if err != nil {
				return err
			}
			if g.Rank()%2 == 0 {
				if sub != nil {
					return errors.New("a rank that is not in the group got one")
				}
				return nil
			}
			want := map[int]int{5: 0, 1: 1, 3: 2}[g.Rank()]
			if sub.Rank() != want || sub.Size() != 3 || !slices.Equal(sub.Ranks(), []int{5, 1, 3}) {
				return fmt.Errorf("got rank %d of %v", sub.Rank(), sub.Ranks())
			}
			for i, r := range []int{5, 1, 3} {
				if sub.WorldRank(i) != r || sub.GroupRank(r) != i {
					return fmt.Errorf("rank %d is world rank %d, world rank %d is rank %d", i, sub.WorldRank(i), r, sub.GroupRank(r))
				}
			}
			if sub.WorldRank(3) != -1 || sub.WorldRank(-1) != -1 || sub.GroupRank(0) != -1 {
				return errors.New("ranks that do not exist were translated")
			}
			// A group of a group: its ranks are ranks of its parent.
			pair, err := NewGroup(ctx, sub, []int{2, 0})
			if err != nil || (pair == nil) != (sub.Rank() == 1) {
				return fmt.Errorf("got %v, %w", pair, err)
			}
			if pair != nil {
				v := []int{g.Rank()}
				if err := Broadcast(ctx, pair, v, 0); err != nil || v[0] != 3 || pair.WorldRank(1) != 5 {
					return fmt.Errorf("got %d, %w from %v", v[0], err, pair)
				}
			}
			sum := []int{g.Rank()}
			if err := AllReduce(ctx, sub, sum, Sum); err != nil || sum[0] != 9 {
				return fmt.Errorf("got %d, %w", sum[0], err)
			}
			return nil
		})
	})
}

func TestGroupsOfOne(t *testing.T) {
	inWorldsOfEverySize(t, func(ctx context.Context, g *Group) error {
		for r := range g.Size() {
			alone, err := NewGroup(ctx, g, []int{r})
			if err != nil || (alone != nil) != (r == g.Rank()) {
				return fmt.Errorf("got %v, %w", alone, err)
			}
			if alone == nil {
				continue
			}
			v, all := []int{7}, []int{0}
			err = errors.Join(
				AllReduce(ctx, alone, v, Avg), Reduce(ctx, alone, v, Sum, 0), Broadcast(ctx, alone, v, 0), Barrier(ctx, alone),
				AllGather(ctx, alone, all, v), ReduceScatter(ctx, alone, v, all, Sum), Send(ctx, alone, v, 0))
			if st, recvErr := Recv(ctx, alone, v, 0); err != nil || recvErr != nil || v[0] != 7 || st.Count != 1 {
				return errors.Join(err, recvErr, fmt.Errorf("got %d, %+v", v[0], st))
			}
		}
		return nil
	})
}

func TestGroupsRunSideBySide(t *testing.T) {
	onEveryTransport(t, func(t *testing.T, world func(int) *testWorld) {
		w := world(8)
		defer w.close()
		w.run(func(ctx context.Context, g *Group) error {
			// tp × dp of 4 × 2: every rank in two groups, used from two goroutines at once.
			var mine []*Group
			for _, ranks := range [][]int{{0, 1, 2, 3}, {4, 5, 6, 7}, {0, 4}, {1, 5}, {2, 6}, {3, 7}} {
				sub, err := NewGroup(ctx, g, ranks)
				if err != nil {
					return err
				}
				if sub != nil {
					mine = append(mine, sub)
				}
			}
			errs := make(chan error, len(mine))
			for _, sub := range mine {
				go func() {
					for i := range 100 {
						v := []int{i}
						if err := AllReduce(ctx, sub, v, Sum); err != nil || v[0] != i*sub.Size() {
							errs <- fmt.Errorf("%v: got %d, %w", sub, v[0], err)
							return
						}
					}
					errs <- nil
				}()
			}
			return errors.Join(<-errs, <-errs)
		})
	})
}

func TestManyGroupsOneAfterTheOther(t *testing.T) {
	testkit.WithoutRace(t)
	onEveryTransport(t, func(t *testing.T, world func(int) *testWorld) {
		w := world(3)
		defer w.close()
		w.run(func(ctx context.Context, g *Group) error {
			for i := range testkit.UnlessShort(1000, 300) {
				sub, err := NewGroup(ctx, g, []int{0, 1, 2})
				if err != nil {
					return err
				}
				v := []int{i}
				if err := errors.Join(AllReduce(ctx, sub, v, Sum), sub.Close()); err != nil || v[0] != 3*i {
					return fmt.Errorf("group %d: got %d, %w", i, v[0], err)
				}
			}
			return nil
		})
	})
}

func TestNewGroupArguments(t *testing.T) {
	onEveryTransport(t, func(t *testing.T, world func(int) *testWorld) {
		w := world(2)
		defer w.close()
		w.run(func(ctx context.Context, g *Group) error {
			for want, ranks := range map[string][]int{
				"comm: NewGroup: no rank 2 in a group of 2":                {0, 2},
				"comm: NewGroup: rank 1 is named twice in [1 0 1]":         {1, 0, 1},
				"comm: NewGroup: no ranks given: a group has at least one": nil,
			} {
				if _, err := NewGroup(ctx, g, ranks); err == nil || err.Error() != want {
					return fmt.Errorf("got %w, want %q", err, want)
				}
			}
			return Barrier(ctx, g)
		})
	})
}
