package comm

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/gorun/gorun/env/testing/testkit"
)

func TestManyRanks(t *testing.T) {
	testkit.WithoutRace(t)
	for transport, size := range map[string]int{
		"mem": 256, "shm": testkit.UnlessShort(256, 64), "tcp": testkit.UnlessShort(256, 64), "mixed": testkit.UnlessShort(256, 64),
	} {
		t.Run(transport, func(t *testing.T) {
			w := worldOver(t, transport, size)
			defer w.close()
			w.run(func(ctx context.Context, g *Group) error {
				v := []int{g.Rank(), 1}
				if err := AllReduce(ctx, g, v, Sum); err != nil || v[0] != size*(size-1)/2 || v[1] != size {
					return fmt.Errorf("got %v, %w", v, err)
				}
				return nil
			})
		})
	}
}

// A rank has a stream to every peer that it talks to, and to no other, however large the world and however many the
// groups.
func TestStreamsGrowWithPeers(t *testing.T) {
	onTransports(t, []string{"mem", "tcp"}, func(t *testing.T, world func(int) *testWorld) {
		for size, peers := range map[int]int{4: 2, 16: 4, 64: 6} { // a short all-reduce talks to log2 of its ranks
			w := world(size)
			streams := func(what string, want func(rank int) int) {
				for r, m := range w.mortal {
					if got := m.Streams(); got != want(r) {
						t.Errorf("%s: rank %d of %d has %d streams, want %d", what, r, size, got, want(r))
					}
				}
			}
			streams("before anything", func(int) int { return 0 })
			w.run(func(ctx context.Context, g *Group) error {
				switch g.Rank() {
				case 0:
					return Send(ctx, g, []int{1}, 1)
				case 1:
					_, err := Recv(ctx, g, []int{0}, 0)
					return err
				}
				return nil
			})
			streams("after one message", func(r int) int { return max(0, min(1, 2-r)) })
			w.run(func(ctx context.Context, g *Group) error { return AllReduce(ctx, g, []int{1}, Sum) })
			streams("after an all-reduce", func(int) int { return peers })
			if size > 16 { // a tree of which an all-reduce has every branch
				w.run(func(ctx context.Context, g *Group) error {
					all, one := make([]int, size), []int{1}
					return errors.Join(Gather(ctx, g, all, one, 5), Scatter(ctx, g, one, all, 5), AllToAll(ctx, g, make([]int, size), all))
				})
				streams("after the short ones of one and all", func(int) int { return 2*peers - 1 })
			}
			w.close()
		}
	})
}

// TestBuffersOfOthers: what ranks other than the root pass for its buffer is neither read nor written to, also where
// blocks travel up and down a tree.
func TestBuffersOfOthers(t *testing.T) {
	testkit.WithoutRace(t)
	const size, root = 20, 5
	for _, n := range []int{1, 3} {
		w := worldOver(t, "mem", size)
		w.run(func(ctx context.Context, g *Group) error {
			all, one := slices.Repeat([]int{-1}, size*n), slices.Repeat([]int{g.Rank()}, n)
			if err := Gather(ctx, g, all, one, root); err != nil {
				return err
			}
			for i, got := range all {
				if want := i / n; g.Rank() == root && got != want || g.Rank() != root && got != -1 {
					return fmt.Errorf("Gather: element %d is %d", i, got)
				}
			}
			if err := Scatter(ctx, g, one, all, root); err != nil {
				return err
			}
			for i, got := range one {
				if got != g.Rank() {
					return fmt.Errorf("Scatter: element %d is %d", i, got)
				}
			}
			return nil
		})
		w.close()
	}
}

// Groups that have been closed leave nothing behind: no stream, goroutine, or memory.
func TestGroupsLeaveNothingBehind(t *testing.T) {
	testkit.WithoutRace(t)
	onEveryTransport(t, func(t *testing.T, world func(int) *testWorld) {
		w := world(4)
		defer w.close()
		makeGroups := func(n int) (goroutines int, heap uint64) {
			w.run(func(ctx context.Context, g *Group) error {
				for i := range n {
					half, err := Split(ctx, g, (g.Rank()+i)%2, -g.Rank())
					if err != nil {
						return err
					}
					whole, err := NewGroup(ctx, g, []int{3, 1, 2, 0})
					if err != nil {
						return err
					}
					v := []int{1}
					if err := errors.Join(AllReduce(ctx, half, v, Sum), AllReduce(ctx, whole, v, Sum)); err != nil || v[0] != 8 {
						return fmt.Errorf("got %d, %w", v[0], err)
					}
					if err := errors.Join(half.Close(), whole.Close()); err != nil {
						return err
					}
				}
				return Barrier(ctx, g)
			})
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			return runtime.NumGoroutine(), m.HeapAlloc
		}
		goroutines, heap := makeGroups(testkit.UnlessShort(1000, 30))
		streams, more := w.mortal[0].Streams(), testkit.UnlessShort(1000, 60)
		goroutines2, heap2 := makeGroups(more)
		if n := w.mortal[0].Streams(); n != streams || goroutines2 > goroutines+100 {
			t.Errorf("from %d streams and %d goroutines to %d and %d", streams, goroutines, n, goroutines2)
		}
		if heap2 > heap+1<<20 {
			t.Errorf("%d groups took %d bytes", more*len(w.groups)*2, heap2-heap)
		}
	})
}
