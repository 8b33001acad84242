package comm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
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
	onEveryPath(t, func(ctx context.Context, g *Group) error {
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
