package comm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"
)

// The ranks of each machine share memory, those that are alone on theirs do without, and so do groups of which all are.
func TestTeamsOnSeveralMachines(t *testing.T) {
	w := worldOver(t, "scattered", 6) // ranks 1 and 2, 0 and 4, 3, and 5 with 1 and 2
	check := func(when string, want int) {
		t.Helper()
		if got := mapped(t, "gorun"); got != want {
			t.Errorf("%s: %d pieces of memory are mapped, want %d", when, got, want)
		}
	}
	w.run(func(ctx context.Context, g *Group) error { return Barrier(ctx, g) })
	check("in the world", 5)
	for _, c := range []struct {
		ranks []int
		want  int
	}{{[]int{3, 4, 5}, 0}, {[]int{5, 3, 0, 1}, 2}, {[]int{2, 1, 5}, 3}} {
		groups := make([]*Group, len(w.groups))
		w.run(func(ctx context.Context, world *Group) error {
			g, err := NewGroup(ctx, world, c.ranks)
			if err != nil || g == nil {
				return err
			}
			groups[world.Rank()] = g
			sum := []int{1}
			if err := AllReduce(ctx, g, sum, Sum); err != nil || sum[0] != len(c.ranks) {
				return fmt.Errorf("got %v, %w", sum, err)
			}
			return nil
		})
		check(fmt.Sprintf("in a group of %v", c.ranks), 5+c.want)
		for _, g := range groups {
			if g == nil {
				continue
			}
			if err := g.Close(); err != nil {
				t.Error(err)
			}
		}
		check("without it", 5)
	}
	w.close()
	check("in the end", 0)
}

// Whether others wait for it in memory or for a message, or for somebody who does: all ranks name the one that does not call.
func TestAllNameTheRankThatDoesNotCallOnSeveralMachines(t *testing.T) {
	const size = 5
	var all sync.WaitGroup // at the same time: they do little but wait
	for _, placement := range onSeveralMachines {
		for culprit := range size {
			all.Go(func() {
				t.Run(fmt.Sprintf("%s, rank %d", placement, culprit), func(t *testing.T) {
					w := worldOver(t, placement, size)
					defer w.close()
					for r, err := range w.results(func(ctx context.Context, g *Group) error {
						if err := Barrier(ctx, g); err != nil {
							return err
						}
						g.core.Timeout = 5 * time.Second
						if g.Rank() == culprit {
							return nil
						}
						return AllReduce(ctx, g, make([]float32, 100_000), Sum)
					}) {
						if r != culprit {
							wantPeerError(t, r, err, culprit, "has not called AllReduce #2: its last call was Barrier #1")
						}
					}
				})
			})
		}
	}
	all.Wait()
}

// Its stages are one collective to who looks at what a rank has done.
func TestTheFlightOfAGroupOnSeveralMachines(t *testing.T) {
	w := worldOver(t, "halves", 4)
	defer w.close()
	const n = 100_000 // so that there are two rails
	w.run(func(ctx context.Context, g *Group) error {
		if err := Barrier(ctx, g); err != nil {
			return err
		}
		return AllReduce(ctx, g, make([]int64, n), Sum)
	})
	for r, g := range w.groups {
		calls := g.Flight().Collectives
		// Of its 8n bytes a rank shows the other one's slice there, exchanges its own with the other node, and shows that here.
		if len(calls) != 2 || calls[1].State != "done" || calls[1].Sent != 8*n/2*3 || calls[1].Received < 8*n {
			t.Errorf("rank %d: %+v", r, calls)
		}
	}
}

// Between machines a broadcast goes by the way that is chosen, which Explain names: root sends to all others, or to one neighbour.
func TestBroadcastBetweenMachinesGoesByTheChosenWay(t *testing.T) {
	const size, n = 6, 10_000
	w := worldOver(t, "scattered", size) // on three machines; rank 4 is on that of root, and takes its copy from memory
	defer w.close()
	for way, messages := range map[string]uint64{"binomial": 2, "chain": 1, "pipeline": 1} {
		w.run(func(ctx context.Context, world *Group) error {
			g, err := NewGroup(ctx, world, world.Ranks(), WithTuning("broadcast="+way))
			if err != nil {
				return err
			}
			buf := make([]byte, n)
			if g.Rank() == 0 {
				buf[n-1] = 1
			}
			if err := Broadcast(ctx, g, buf, 0); err != nil || buf[n-1] != 1 {
				return fmt.Errorf("%s: got %d, %w", way, buf[n-1], err)
			}
			calls := g.Flight().Collectives
			if sent := calls[len(calls)-1].Sent; g.Rank() == 0 && sent != (messages+1)*n {
				return fmt.Errorf("%s: root has sent %d bytes, want %d", way, sent, (messages+1)*n)
			}
			return nil
		})
	}
}

// A call that comes again goes the same way, between other buffers.
func TestCallsThatComeAgainOnSeveralMachines(t *testing.T) {
	onTransports(t, onSeveralMachines, func(t *testing.T, world func(int) *testWorld) {
		w := world(5)
		defer w.close()
		w.run(func(ctx context.Context, g *Group) error {
			for _, n := range []int{7, 9000, 7, 9000} { // short, and longer than what goes by leaders
				m := newMoves(g, n, func(v int) int64 { return int64(v) })
				err := errors.Join(integers[int64]().reduction(ctx, g, Sum, n), m.toAll(ctx), m.toRoot(ctx), m.fromRoot(ctx), m.allToAll(ctx))
				if err != nil {
					return fmt.Errorf("of %d: %w", n, err)
				}
			}
			return nil
		})
	})
}

// Vectors that several rails carry, to and from every root.
func TestLongVectorsOnSeveralMachines(t *testing.T) {
	onTransports(t, append([]string{"uneven" + inPieces}, onSeveralMachines...), func(t *testing.T, world func(int) *testWorld) {
		for _, size := range []int{6, 7} { // machines with as many ranks, and with some more and some fewer
			w := world(size)
			w.run(longVectors)
			w.close()
		}
	})
}

// Vectors that go down a chain in many messages, on one machine and between several.
func TestPipelines(t *testing.T) {
	onTransports(t, append([]string{"mem", "tcp"}, onSeveralMachines...), func(t *testing.T, world func(int) *testWorld) {
		w := world(7)
		defer w.close()
		w.run(func(ctx context.Context, world *Group) error {
			g, err := NewGroup(ctx, world, world.Ranks(), WithTuning("broadcast=pipeline;reduce=pipeline;reduce_scatter=pipeline"))
			if err != nil {
				return err
			}
			for _, n := range []int{20_011, 100_003} {
				if err := pipelines(ctx, g, n); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

func pipelines(ctx context.Context, g *Group, n int) error {
	k, rank, size := integers[int64](), g.Rank(), g.Size()
	sum := func(i int) int64 { return reference(Sum, 0, size, i) }
	own := func(i int) int64 { return input(rank, i) }
	block, in := make([]int64, n/size), k.vector(g, 0, n/size*size)
	if err := samePeriods("ReduceScatter", ReduceScatter(ctx, g, block, in, Sum), block, func(i int) int64 { return sum(rank*len(block) + i) }); err != nil {
		return err
	}
	if err := samePeriods("the input of ReduceScatter", nil, in, own); err != nil {
		return err
	}
	result := composed(0, size, 1000)
	for _, root := range []int{0, size / 2, size - 1} {
		want := own
		if rank == root {
			want = sum
		}
		buf := k.vector(g, 0, n)
		if err := samePeriods("Reduce", Reduce(ctx, g, buf, Sum, root), buf, want); err != nil {
			return fmt.Errorf("to rank %d: %w", root, err)
		}
		half := make([]Float16, n)
		of := func(f func(int) int64) func(i int) Float16 {
			return func(i int) Float16 { return NewFloat16(float32(f(i))) }
		}
		repeat(half, period, of(own))
		if err := samePeriods("Reduce", Reduce(ctx, g, half, Sum, root), half, of(want)); err != nil {
			return fmt.Errorf("of half floats, to rank %d: %w", root, err)
		}
		ordered, after := maps(rank, 1000), maps(rank, 1000)
		if rank == root {
			after = result
		}
		if err := sameAs("Reduce", Reduce(ctx, g, ordered, affine, root), ordered, after); err != nil {
			return fmt.Errorf("in order, to rank %d: %w", root, err)
		}
		buf = k.vector(g, 0, n)
		if err := samePeriods("Broadcast", Broadcast(ctx, g, buf, root), buf, func(i int) int64 { return input(root, i) }); err != nil {
			return fmt.Errorf("from rank %d: %w", root, err)
		}
	}
	return nil
}

// One rank has nearly everything, so that between machines its block is cut into messages that overlap.
func TestBlocksOfVeryDifferentLengths(t *testing.T) {
	onTransports(t, append([]string{"mem", "tcp"}, onSeveralMachines...), func(t *testing.T, world func(int) *testWorld) {
		for _, size := range []int{4, 7} {
			w := world(size)
			w.run(func(ctx context.Context, g *Group) error {
				for _, long := range []int{0, 1, size - 1} {
					for _, n := range []int{3, 30, 5003, 120_011} {
						if err := oneLongBlock(ctx, g, long, n); err != nil {
							return fmt.Errorf("%d on rank %d: %w", n, long, err)
						}
					}
				}
				return nil
			})
			w.close()
		}
	})
}

// oneLongBlock gathers and reduces blocks of which that of rank long has n elements, and the others have 0 to 2.
func oneLongBlock(ctx context.Context, g *Group, long, n int) error {
	rank, size := g.Rank(), g.Size()
	var parts [][]int64
	var halves [][]Float16
	var at []int
	whole := 0
	for r := range size {
		length := r % 3
		if r == long {
			length = n
		}
		parts, halves, at = append(parts, make([]int64, length)), append(halves, make([]Float16, length)), append(at, whole)
		whole += length
	}
	own := make([]int64, len(parts[rank]))
	repeat(own, period, func(i int) int64 { return input(rank, i) })
	err := AllGatherV(ctx, g, parts, own)
	for r, part := range parts {
		if err := samePeriods(fmt.Sprint("AllGatherV of rank ", r), err, part, func(i int) int64 { return input(r, i) }); err != nil {
			return err
		}
	}
	for r := range size {
		for i := range parts[r] {
			parts[r][i] = input(rank, at[r]+i)
			halves[r][i] = NewFloat16(float32(parts[r][i]))
		}
	}
	sum := func(i int) int64 { return reference(Sum, 0, size, at[rank]+i) }
	if err := samePeriods("ReduceScatterV", ReduceScatterV(ctx, g, own, parts, Sum), own, sum); err != nil {
		return err
	}
	twice := make([]Float16, len(own))
	return samePeriods("ReduceScatterV of half floats", ReduceScatterV(ctx, g, twice, halves, PreMulSum(2)), twice,
		func(i int) Float16 { return NewFloat16(float32(2 * sum(i))) })
}

func longVectors(ctx context.Context, g *Group) error {
	const n, block = 10_007, 5003
	k, rank, size := integers[int64](), g.Rank(), g.Size()
	sum := func(i int) int64 { return reference(Sum, 0, size, i) }
	out := make([]int64, block)
	err := ReduceScatter(ctx, g, out, k.vector(g, 0, block*size), Sum)
	if err := samePeriods("ReduceScatter", err, out, func(i int) int64 { return sum(rank*block + i) }); err != nil {
		return err
	}
	half := make([]Float16, 4*n)
	repeat(half, period, func(i int) Float16 { return NewFloat16(float32(input(rank, i))) })
	if err := samePeriods("AllReduce", AllReduce(ctx, g, half, Sum), half, func(i int) Float16 { return NewFloat16(float32(sum(i))) }); err != nil {
		return err
	}
	for root := range size {
		buf := k.vector(g, 0, n)
		want := func(i int) int64 { return input(rank, i) }
		if rank == root {
			want = sum
		}
		if err := samePeriods("Reduce", Reduce(ctx, g, buf, Sum, root), buf, want); err != nil {
			return fmt.Errorf("to rank %d: %w", root, err)
		}
		buf = k.vector(g, 0, n)
		if err := samePeriods("Broadcast", Broadcast(ctx, g, buf, root), buf, func(i int) int64 { return input(root, i) }); err != nil {
			return fmt.Errorf("from rank %d: %w", root, err)
		}
	}
	all, result := maps(rank, n), composed(0, size, n)
	if err := sameAs("AllReduce", AllReduce(ctx, g, all, affine), all, result); err != nil {
		return err
	}
	mine := make([]uint64, 2*block)
	result = composed(0, size, block*size)[2*rank*block:][:2*block]
	err = ReduceScatter(ctx, g, mine, maps(rank, block*size), affine)
	return sameAs("ReduceScatter", err, mine, result)
}
