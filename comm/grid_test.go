package comm

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/gorun/gorun/comm/internal/reduce"
	"github.com/gorun/gorun/env/testing/testkit"
)

// The grid: every reduction against a sequential reference, for element types and operations.

// period is that of input in i, and so that of what becomes of it.
const period = 6

// repeat sets each v[i] to f(i); f has that period.
func repeat[T any](v []T, period int, f func(i int) T) {
	for i := range min(len(v), period) {
		v[i] = f(i)
	}
	for done := period; done < len(v); done *= 2 { // for the race detector a copy is one access, and a loop many
		copy(v[done:], v[:done])
	}
}

// input is element i of rank r, small enough that sums and products are exact in every type and order.
func input(r, i int) int64 {
	if r%4 == 3 {
		return int64(i % 2)
	}
	return int64((r*7+i*5)%3 + 1)
}

// reference combines element i of ranks lo to hi-1 the slow way.
func reference(op Op, lo, hi, i int) int64 {
	truth := map[bool]int64{true: 1}
	acc := input(lo, i)
	if hi-lo == 1 && op.reduction().Normalize {
		return truth[acc != 0]
	}
	for r := lo + 1; r < hi; r++ {
		v := input(r, i)
		switch op {
		case Sum, Avg:
			acc += v
		case Prod:
			acc *= v
		case Min:
			acc = min(acc, v)
		case Max:
			acc = max(acc, v)
		case BitAnd:
			acc &= v
		case BitOr:
			acc |= v
		case BitXor:
			acc ^= v
		case LogicalAnd:
			acc = truth[acc != 0 && v != 0]
		case LogicalOr:
			acc = truth[acc != 0 || v != 0]
		case LogicalXor:
			acc = truth[(acc != 0) != (v != 0)]
		default:
			panic(op)
		}
	}
	return acc
}

var (
	arithmetic = []Op{Sum, Prod, Avg}
	orders     = append([]Op{Min, Max}, arithmetic...)
	bitwise    = append([]Op{BitAnd, BitOr, BitXor, LogicalAnd, LogicalOr, LogicalXor}, orders...)
)

// A grid checks collectives of elements of type T.
type grid[T Element] struct {
	ops []Op
	of  func(int64) T            // makes an element of a small integer
	avg func(sum int64, n int) T // divides as the type does
}

func integers[T ~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr]() grid[T] {
	return grid[T]{bitwise, func(v int64) T { return T(v) }, func(s int64, n int) T { return T(s / int64(n)) }}
}

func floats[T ~float32 | ~float64]() grid[T] {
	return grid[T]{orders, func(v int64) T { return T(v) }, func(s int64, n int) T { return T(s) / T(n) }}
}

func (k grid[T]) reductions(ctx context.Context, g *Group, lengths []int) error {
	for _, op := range k.ops {
		for _, n := range lengths {
			if n != 10 && op != Sum {
				continue
			}
			if err := k.reduction(ctx, g, op, n); err != nil {
				return err
			}
		}
	}
	return nil
}

func (k grid[T]) vector(g *Group, from, n int) []T {
	v := make([]T, n)
	repeat(v, period, func(i int) T { return k.of(input(g.Rank(), from+i)) })
	return v
}

// same checks what op left in got.
func same[T Element](call string, err error, got []T, want func(i int) T) error {
	if err != nil {
		return fmt.Errorf("%s: %w", call, err)
	}
	for i, v := range got {
		if w := want(i); v != w {
			return fmt.Errorf("%s of %d × %T: element %d is %v, want %v", call, len(got), v, i, v, w)
		}
	}
	return nil
}

// sameAs checks that call left want in got.
func sameAs[T Element](call string, err error, got, want []T) error {
	if err == nil && bytes.Equal(reduce.Bytes(got), reduce.Bytes(want)) {
		return nil
	}
	return same(call, err, got, func(i int) T { return want[i] })
}

// samePeriods is same for a want that has the period of input.
func samePeriods[T Element](call string, err error, got []T, want func(i int) T) error {
	all := make([]T, len(got))
	repeat(all, period, want)
	return sameAs(call, err, got, all)
}

// reduction checks every reduction of n elements by op.
func (k grid[T]) reduction(ctx context.Context, g *Group, op Op, n int) (err error) {
	rank, size, root := g.Rank(), g.Size(), n%g.Size()
	of := func(i int) T { return k.of(input(rank, i)) }
	upTo := func(ranks int) func(i int) T {
		return func(i int) T {
			if v := reference(op, 0, ranks, i); op != Avg {
				return k.of(v)
			}
			return k.avg(reference(op, 0, ranks, i), ranks)
		}
	}
	inPlace := func(call string, f func(buf []T) error, want func(i int) T) {
		if err == nil {
			buf := k.vector(g, 0, n)
			err = samePeriods(fmt.Sprintf("%s %v", call, op), f(buf), buf, want)
		}
	}
	want, reduced, below := upTo(size), of, of
	if rank == root {
		reduced = want
	}
	if rank > 0 {
		below = upTo(rank)
	}
	inPlace("AllReduce", func(buf []T) error { return AllReduce(ctx, g, buf, op) }, want)
	inPlace("Reduce", func(buf []T) error { return Reduce(ctx, g, buf, op, root) }, reduced)
	if op != Avg {
		inPlace("Scan", func(buf []T) error { return Scan(ctx, g, buf, op) }, upTo(rank+1))
		inPlace("ExScan", func(buf []T) error { return ExScan(ctx, g, buf, op) }, below)
	}
	in := k.vector(g, 0, n*size)
	scattered := func(call string, f func(out []T) error) {
		if out := make([]T, n); err == nil {
			err = samePeriods(fmt.Sprintf("%s %v", call, op), f(out), out, func(i int) T { return want(rank*n + i) })
		}
	}
	scattered("ReduceScatter", func(out []T) error { return ReduceScatter(ctx, g, out, in, op) })
	scattered("ReduceScatterV", func(out []T) error { return ReduceScatterV(ctx, g, out, cut(in, size), op) })
	if err == nil {
		err = samePeriods("the input of ReduceScatter", nil, in, of)
	}
	return err
}

func TestReductions(t *testing.T) {
	testkit.WithoutRace(t)
	complex64s := grid[complex64]{
		arithmetic, func(v int64) complex64 { return complex(float32(v), 0) },
		func(s int64, n int) complex64 { return complex(float32(s)/float32(n), 0) },
	}
	complex128s := grid[complex128]{
		arithmetic, func(v int64) complex128 { return complex(0, float64(v)) },
		func(s int64, n int) complex128 { return complex(0, float64(s)/float64(n)) },
	}
	complex128s.ops = []Op{Sum, Avg} // the product of imaginary numbers is none
	float16s := grid[Float16]{
		orders, func(v int64) Float16 { return NewFloat16(float32(v)) },
		func(s int64, n int) Float16 { return NewFloat16(float32(s) / float32(n)) },
	}
	bfloat16s := grid[BFloat16]{
		orders, func(v int64) BFloat16 { return NewBFloat16(float32(v)) },
		func(s int64, n int) BFloat16 { return NewBFloat16(float32(s) / float32(n)) },
	}
	type grad float32 // a type of the caller's own
	type checks []func(context.Context, *Group, []int) error
	all := checks{
		integers[int64]().reductions, floats[float32]().reductions, integers[int]().reductions, integers[int8]().reductions,
		integers[int16]().reductions, integers[int32]().reductions, integers[uint]().reductions, integers[uint8]().reductions, integers[uint16]().reductions, integers[uint32]().reductions,
		integers[uint64]().reductions, integers[uintptr]().reductions, floats[float64]().reductions, floats[grad]().reductions,
		complex64s.reductions, complex128s.reductions, float16s.reductions, bfloat16s.reductions,
	}
	onEveryPath(t, func(ctx context.Context, g *Group) error {
		for _, check := range all {
			if err := check(ctx, g, []int{1, 10, 1000}); err != nil {
				return err
			}
		}
		return nil
	})
}
