package comm

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/gorun/gorun/env/testing/testkit"
)

// TestLongVectorsOnSeveralMachines: several rails carry long vectors to every root, and from it.
func TestLongVectorsOnSeveralMachines(t *testing.T) {
	testkit.WithoutRace(t)
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
	testkit.WithoutRace(t)
	onTransports(t, append([]string{"mem", "tcp"}, onSeveralMachines...), func(t *testing.T, world func(int) *testWorld) {
		w := world(7)
		defer w.close()
		w.run(func(ctx context.Context, world *Group) error {
			g, err := NewGroup(ctx, world, world.Ranks(), withRules("broadcast=pipeline;reduce=pipeline;reduce_scatter=pipeline"))
			if err != nil {
				return err
			}
			for _, n := range testkit.UnlessShort([]int{20_011, 100_003}, []int{20_011}) {
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

// One rank has nearly everything: between machines, a reduction cuts its block into messages that overlap.
func TestBlocksOfVeryDifferentLengths(t *testing.T) {
	testkit.WithoutRace(t)
	onTransports(t, append([]string{"mem", "tcp"}, onSeveralMachines...), func(t *testing.T, world func(int) *testWorld) {
		for _, size := range testkit.UnlessShort([]int{4, 7}, []int{7}) {
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

// Whatever the algorithm, a reduction changes no rank's input but that of a result, and does not combine what was there
// before.
func TestReductionsLeaveTheirInput(t *testing.T) {
	testkit.WithoutRace(t)
	inWorldsOfEverySize(t, func(ctx context.Context, world *Group) error {
		for _, tuning := range []string{
			"reduce=binomial;reduce_scatter=halving", "reduce=pipeline;reduce_scatter=pipeline", "reduce=linear;reduce_scatter=pairwise",
		} {
			g, err := NewGroup(ctx, world, world.Ranks(), withRules(tuning))
			if err != nil {
				return err
			}
			for call, n := range []int{300, 41, 1, 0, 301} { // elements of a block
				value := func(rank, i int) int32 { return int32((call+2)*(rank+3)*7919 + i) }
				sum := func(i int) (s int32) {
					for r := range g.Size() {
						s += value(r, i)
					}
					return s
				}
				in, out := make([]int32, n*g.Size()), make([]int32, n)
				for i := range in {
					in[i] = value(g.Rank(), i)
				}
				before, root := slices.Clone(in), call%g.Size()
				if err := ReduceScatter(ctx, g, out, in, Sum); err != nil {
					return err
				}
				for i, v := range out {
					if want := sum(g.Rank()*n + i); v != want {
						return fmt.Errorf("%s: block of %d, element %d is %d, want %d", tuning, n, i, v, want)
					}
				}
				if !slices.Equal(in, before) {
					return fmt.Errorf("%s: ReduceScatter of blocks of %d has changed its input", tuning, n)
				}
				if err := Reduce(ctx, g, in, Sum, root); err != nil {
					return err
				}
				for i, v := range in {
					if want := sum(i); g.Rank() == root && v != want {
						return fmt.Errorf("%s: of %d elements, number %d is %d, want %d", tuning, len(in), i, v, want)
					}
				}
				if g.Rank() != root && !slices.Equal(in, before) {
					return fmt.Errorf("%s: Reduce of %d elements has changed its input", tuning, len(in))
				}
			}
			if err := g.Close(); err != nil {
				return err
			}
		}
		return nil
	})
}
