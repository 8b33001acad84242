package comm

import (
	"bytes"
	"cmp"
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
	v := buffer[T](g, n)
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

func (k grid[T]) reduction(ctx context.Context, g *Group, op Op, n int) error {
	rank, size := g.Rank(), g.Size()
	of := func(i int) T { return k.of(input(rank, i)) }
	want := func(i int) T {
		v := reference(op, 0, size, i)
		if op == Avg {
			return k.avg(v, size)
		}
		return k.of(v)
	}
	check := func(call string, err error, got []T, want func(i int) T) error {
		return samePeriods(fmt.Sprintf("%s %v", call, op), err, got, want)
	}
	to := func(call string, f func(out, in []T) error, want func(i int) T) error { // in keeps its elements
		out, in := buffer[T](g, n), k.vector(g, 0, n)
		return cmp.Or(check(call, f(out, in), out, want), check("input of "+call, nil, in, of))
	}
	buf := k.vector(g, 0, n)
	err := cmp.Or(
		check("AllReduce", AllReduce(ctx, g, buf, op), buf, want),
		to("AllReduceTo", func(out, in []T) error { return AllReduceTo(ctx, g, out, in, op) }, want))
	if err != nil {
		return err
	}
	root := n % size
	unchanged := func(int) T { return 0 }
	result, resultTo := of, unchanged // elsewhere than at the root
	if rank == root {
		result, resultTo = want, want
	}
	buf = k.vector(g, 0, n)
	err = cmp.Or(
		check("Reduce", Reduce(ctx, g, buf, op, root), buf, result),
		to("ReduceTo", func(out, in []T) error { return ReduceTo(ctx, g, out, in, op, root) }, resultTo))
	if err != nil {
		return err
	}
	if err := k.scattered(ctx, g, op, n, check, want); err != nil {
		return err
	}
	if op == Avg {
		return nil
	}
	buf = k.vector(g, 0, n)
	scan := func(i int) T { return k.of(reference(op, 0, rank+1, i)) }
	err = cmp.Or(
		check("Scan", Scan(ctx, g, buf, op), buf, scan),
		to("ScanTo", func(out, in []T) error { return ScanTo(ctx, g, out, in, op) }, scan))
	if err != nil {
		return err
	}
	result, resultTo = of, unchanged
	if rank > 0 {
		result = func(i int) T { return k.of(reference(op, 0, rank, i)) }
		resultTo = result
	}
	buf = k.vector(g, 0, n)
	return cmp.Or(
		check("ExScan", ExScan(ctx, g, buf, op), buf, result),
		to("ExScanTo", func(out, in []T) error { return ExScanTo(ctx, g, out, in, op) }, resultTo))
}

func (k grid[T]) scattered(ctx context.Context, g *Group, op Op, n int, check func(string, error, []T, func(int) T) error, want func(int) T) error {
	rank, size := g.Rank(), g.Size()
	block := min(n, 1001)
	in, out := k.vector(g, 0, block*size), buffer[T](g, block)
	err := check("ReduceScatter", ReduceScatter(ctx, g, out, in, op), out, func(i int) T { return want(rank*block + i) })
	if err != nil {
		return err
	}
	parts, at := make([][]T, size), make([]int, size+1) // part r has block+r elements, part 0 none
	for r := range parts {
		m := (block + r) * min(r, 1)
		parts[r], at[r+1] = k.vector(g, at[r], m), at[r]+m
	}
	out = make([]T, len(parts[rank]))
	if err := check("ReduceScatterV", ReduceScatterV(ctx, g, out, parts, op), out, func(i int) T { return want(at[rank] + i) }); err != nil {
		return err
	}
	for r, p := range append(parts, in) {
		from := 0
		if r < size {
			from = at[r]
		}
		if err := check("input of ReduceScatter", nil, p, func(i int) T { return k.of(input(rank, from+i)) }); err != nil {
			return err
		}
	}
	return nil
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
