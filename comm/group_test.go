package comm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
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

// Members alone make a group while the other ranks do something else, and several of the same ranks in any order.
func TestNewGroupOf(t *testing.T) {
	onEveryTransport(t, func(t *testing.T, world func(int) *testWorld) {
		w := world(5)
		defer w.close()
		w.run(func(ctx context.Context, g *Group) error {
			members, names := []int{3, 1, 4}, []string{"a", "b"}
			if !slices.Contains(members, g.Rank()) {
				return Barrier(ctx, g)
			}
			if g.Rank() == 1 {
				slices.Reverse(names)
			}
			groups := map[string]*Group{}
			for _, name := range names {
				part, err := NewGroupOf(ctx, g, members, name)
				if err != nil {
					return err
				}
				groups[name] = part
			}
			all, sum := make([]int, 3), []int{g.Rank()}
			err := errors.Join(AllReduce(ctx, groups["b"], sum, Sum), AllGather(ctx, groups["a"], all, []int{g.Rank()}))
			if err != nil || !slices.Equal(all, members) || sum[0] != 8 {
				return fmt.Errorf("got %v and %v: %w", all, sum, err)
			}
			if g.Rank() != 1 { // of a group of their own
				pair, err := NewGroupOf(ctx, groups["a"], []int{2, 0}, "a")
				if err != nil {
					return err
				}
				first := []int{g.Rank()}
				if err := Broadcast(ctx, pair, first, 0); err != nil || first[0] != 4 {
					return fmt.Errorf("got %v: %w", first, err)
				}
			}
			return Barrier(ctx, g)
		})
	})
}

// TestNewGroupOfWaitsForNobody: a member makes a group before the other one does.
func TestNewGroupOfWaitsForNobody(t *testing.T) {
	w := newTestWorld(t, transports["mem"](t, 2))
	defer w.close()
	made := make(chan struct{})
	w.run(func(ctx context.Context, g *Group) error {
		if g.Rank() == 1 {
			<-made
		}
		part, err := NewGroupOf(ctx, g, []int{1, 0}, "a")
		if err != nil {
			return err
		}
		if g.Rank() == 0 {
			close(made)
		}
		return Barrier(ctx, part)
	})
}

func TestNewGroupOfIsRefused(t *testing.T) {
	w := newTestWorld(t, transports["mem"](t, 3))
	defer w.close()
	w.run(func(ctx context.Context, g *Group) error {
		all := []int{0, 1, 2}
		parent, err := NewGroup(ctx, g, all)
		if err != nil {
			return err
		}
		first, err := NewGroupOf(ctx, parent, all, "a")
		if err != nil {
			return err
		}
		_ = first.Close() // nothing is under way
		others := slices.DeleteFunc(slices.Clone(all), func(r int) bool { return r == g.Rank() })
		for _, c := range []struct {
			ranks []int
			want  string
		}{
			{all, `ranks [0 1 2] have made a group "a" before: want another name`},
			{others, fmt.Sprintf("rank %d is none of %v: only members call it", g.Rank(), others)},
			{[]int{g.Rank(), 3}, "no rank 3 in a group of 3"},
			{nil, "no ranks given: a group has at least one"},
		} {
			var argument *ArgumentError
			if _, err := NewGroupOf(ctx, parent, c.ranks, "a"); !errors.As(err, &argument) || err.Error() != "comm: NewGroupOf: "+c.want {
				return fmt.Errorf("%v: got %w, want %s", c.ranks, err, c.want)
			}
		}
		if err := Barrier(ctx, g); err != nil {
			return err
		}
		if g.Rank() == 0 {
			parent.Abort(errors.New("no data"))
		}
		<-parent.Done()
		var abort *AbortError
		if _, err := NewGroupOf(ctx, parent, all, "b"); !errors.As(err, &abort) {
			return fmt.Errorf("of a failed parent: %w", err)
		}
		_ = parent.Close() // it has failed
		if _, err := NewGroupOf(ctx, parent, all, "b"); !errors.Is(err, ErrClosed) {
			return fmt.Errorf("of a closed parent: %w", err)
		}
		return nil
	})
}

// Members that disagree about their group never meet, and both learn of that when their time is up.
func TestMembersOfNewGroupOfDisagree(t *testing.T) {
	onEveryTransport(t, func(t *testing.T, world func(int) *testWorld) {
		w := world(2)
		defer w.close()
		w.run(func(ctx context.Context, g *Group) error {
			ranks := [][]int{{0, 1}, {1, 0}}[g.Rank()]
			part, err := NewGroupOf(ctx, g, ranks, "a", WithTimeout(time.Second))
			if err != nil {
				return err
			}
			if err := AllReduce(ctx, part, []int{1}, Sum); !errors.Is(err, ErrTimeout) {
				return fmt.Errorf("got %w", err)
			}
			return Barrier(ctx, g)
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
