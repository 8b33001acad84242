package comm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/testing/transporttest"
	"github.com/gorun/gorun/env/testing/testkit"
)

// Whatever colors and keys ranks give: the groups are those that sorting by (color, key, rank) makes, and they work.
func TestSplitSortsByColorAndKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type place struct{ color, key, rank int }
		places := make([]place, rapid.IntRange(1, 7).Draw(t, "size"))
		for r := range places {
			places[r] = place{rapid.IntRange(-1, 2).Draw(t, "color"), rapid.IntRange(-2, 2).Draw(t, "key"), r}
		}
		var mu sync.Mutex
		got := make([][]int, len(places))
		inMemory(t, len(places), func(ctx context.Context, g *Group) error {
			sub, err := Split(ctx, g, places[g.Rank()].color, places[g.Rank()].key)
			if sub == nil || err != nil {
				return err
			}
			sum := []int{g.Rank()}
			if err := AllReduce(ctx, sub, sum, BitXor); err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			got[g.Rank()] = append(sub.Ranks(), sum[0])
			return nil
		})
		sorted := slices.SortedFunc(slices.Values(places), func(a, b place) int {
			return cmp.Or(cmp.Compare(a.color, b.color), cmp.Compare(a.key, b.key), cmp.Compare(a.rank, b.rank))
		})
		for r, p := range places {
			var want []int
			xor := 0
			for _, q := range sorted {
				if q.color == p.color && p.color >= 0 {
					want, xor = append(want, q.rank), xor^q.rank
				}
			}
			if p.color >= 0 {
				want = append(want, xor)
			}
			if !slices.Equal(got[r], want) {
				t.Fatalf("%v: rank %d got %v, want %v", places, r, got[r], want)
			}
		}
	})
}

// inMemory runs program on every rank of a world in memory.
func inMemory(t interface{ Fatalf(string, ...any) }, size int, program func(ctx context.Context, g *Group) error) {
	network := transporttest.NewNetwork(size)
	errs := make([]error, size)
	var wg sync.WaitGroup
	for r := range size {
		g, err := memberOf(r, make([]core.Peer, size), network.Transport(r), io.Discard)
		if err != nil {
			t.Fatalf("%v", err)
		}
		wg.Go(func() {
			errs[r] = errors.Join(program(context.Background(), g), Barrier(context.Background(), g), g.Close())
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatalf("%v", err)
	}
}

// Eight ranks as tensor × pipeline × data parallel: each is in a group of its own of every kind, and groups of groups
// make the same ones.
func TestThreeKindsOfGroupsAtOnce(t *testing.T) {
	onEveryTransport(t, func(t *testing.T, world func(int) *testWorld) {
		w := world(8)
		defer w.close()
		w.run(func(ctx context.Context, g *Group) error {
			r := g.Rank()
			tp, errTP := Split(ctx, g, r/2, r)
			replica, err := Split(ctx, g, r/4, r)
			if err := errors.Join(err, errTP); err != nil {
				return err
			}
			pp, errPP := Split(ctx, replica, r%2, -r) // of a group, the last stage first
			dp, errDP := Split(ctx, g, r%4, 0)
			if err := errors.Join(errPP, errDP); err != nil {
				return err
			}
			for _, c := range []struct {
				g    *Group
				want []int
			}{{tp, []int{r &^ 1, r | 1}}, {pp, []int{r | 2, r &^ 2}}, {dp, []int{r &^ 4, r | 4}}} {
				if !slices.Equal(c.g.Ranks(), c.want) {
					return fmt.Errorf("got %v, want %v", c.g.Ranks(), c.want)
				}
			}
			errs := make(chan error)
			for _, sub := range []*Group{tp, pp, dp} {
				go func() {
					for i := range 50 {
						v := []int{r + i}
						if err := AllReduce(ctx, sub, v, Sum); err != nil || v[0] != sub.core.Ranks[0]+sub.core.Ranks[1]+2*i {
							errs <- fmt.Errorf("%v: got %d, %w", sub, v[0], err)
							return
						}
					}
					errs <- nil
				}()
			}
			return errors.Join(<-errs, <-errs, <-errs)
		})
	})
}

// Groups of the same ranks do not hear each other.
func TestTheSameRanksTwice(t *testing.T) {
	inWorldOf(t, 2, func(ctx context.Context, g *Group) error {
		a, err := NewGroup(ctx, g, []int{0, 1})
		if err != nil {
			return err
		}
		b, err := NewGroup(ctx, g, []int{0, 1})
		if err != nil {
			return err
		}
		if g.Rank() == 0 {
			return errors.Join(Send(ctx, b, []int{2}, 1), Send(ctx, a, []int{1}, 1))
		}
		fromA, fromB := []int{0}, []int{0}
		_, errA := Recv(ctx, a, fromA, 0)
		_, errB := Recv(ctx, b, fromB, 0)
		return wantEqual("Recv", []int{fromA[0], fromB[0]}, []int{1, 2}, errors.Join(errA, errB))
	})
}

// Closing a group tells its members, also those that only wait and those that this rank has never talked to; other
// groups of the same ranks go on.
func TestClosingAPartOfTheWorld(t *testing.T) {
	for name, need := range map[string]func(ctx context.Context, g *Group) error{
		"Recv":      func(ctx context.Context, g *Group) error { _, err := Recv(ctx, g, []int{0}, 2); return err },
		"Send":      func(ctx context.Context, g *Group) error { return Send(ctx, g, make([]int, 1<<20), 2) },
		"Barrier":   Barrier,
		"AllReduce": func(ctx context.Context, g *Group) error { return AllReduce(ctx, g, make([]int, 10), Sum) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorldOf(t, 3, func(ctx context.Context, g *Group) error {
				sub, err := NewGroup(ctx, g, []int{0, 1, 2})
				if err != nil {
					return err
				}
				if g.Rank() == 2 {
					return errors.Join(sub.Close(), Barrier(ctx, g))
				}
				var peer *PeerError
				if err := need(ctx, sub); !errors.As(err, &peer) || peer.Rank != 2 || !strings.Contains(err.Error(), "has left (closed the group)") {
					return fmt.Errorf("got %w, want a PeerError: rank 2 has left", err)
				}
				return Barrier(ctx, g)
			})
		})
	}
}

// A rank closes a group when it is done with it, however far the others are.
func TestLeavingAGroupRightAfterTheLastOperation(t *testing.T) {
	testkit.WithoutRace(t)
	inWorldOf(t, 4, func(ctx context.Context, g *Group) error {
		for i := range testkit.UnlessShort(100, 20) {
			sub, err := Split(ctx, g, i%3+g.Rank()%2, 0)
			if err != nil {
				return err
			}
			v := make([]int, 10_000*(i%2)+1)
			if err := errors.Join(AllReduce(ctx, sub, v, Sum), Barrier(ctx, sub), sub.Close()); err != nil {
				return err
			}
		}
		return nil
	})
}
