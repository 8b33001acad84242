package comm

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/gorun/gorun/comm/internal/reduce"
)

// mark is element i of what rank from has for rank to.
func mark(from, to, i int) int { return from*31 + to*17 + i }

// moving checks the collectives that only move elements; of makes an element of a mark.
func moving[T Element](ctx context.Context, g *Group, lengths []int, of func(int) T) error {
	all := newMoves(g, slices.Max(lengths), of)
	for _, n := range lengths {
		m := moves[T]{g, n, all.marks}
		for _, check := range []func(context.Context) error{m.toAll, m.toRoot, m.fromRoot, m.allToAll} {
			if err := check(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// moves are the checks of one length, n.
type moves[T Element] struct {
	g     *Group
	n     int
	marks []T // the elements that are made of marks 0, 1, ...
}

func newMoves[T Element](g *Group, n int, of func(int) T) moves[T] {
	marks := make([]T, mark(g.Size(), g.Size(), n))
	for i := range marks {
		marks[i] = of(i)
	}
	return moves[T]{g, n, marks}
}

// had returns the n elements that rank from has for rank to.
func (m moves[T]) had(from, to, n int) []T { return m.marks[mark(from, to, 0):][:n] }

func (m moves[T]) vector(from, to, n int) []T {
	v := buffer[T](m.g, n)
	copy(v, m.had(from, to, n))
	return v
}

// uneven is the length of what rank r has in calls where lengths differ.
func (m moves[T]) uneven(r int) int { return (m.n + r) * (r % 3) / 2 }

func (m moves[T]) parts(length func(r int) int) [][]T {
	parts := make([][]T, m.g.Size())
	for r := range parts {
		parts[r] = make([]T, length(r))
	}
	return parts
}

// gathered checks that out[r] holds what rank r had for rank to(r).
func (m moves[T]) gathered(call string, err error, out [][]T, to int) error {
	for r, v := range out {
		if err := sameAs(fmt.Sprintf("%s, part %d", call, r), err, v, m.had(r, to, len(v))); err != nil {
			return err
		}
	}
	return err
}

func (m moves[T]) toAll(ctx context.Context) error {
	g := m.g
	root := m.n % g.Size()
	buf := m.vector(g.Rank(), 0, m.n)
	if err := sameAs("Broadcast", Broadcast(ctx, g, buf, root), buf, m.had(root, 0, m.n)); err != nil {
		return err
	}
	out := buffer[T](g, g.Size()*m.n)
	err := AllGather(ctx, g, out, m.vector(g.Rank(), 0, m.n))
	if err := m.gathered("AllGather", err, cut(out, g.Size()), 0); err != nil {
		return err
	}
	parts := m.parts(m.uneven)
	err = AllGatherV(ctx, g, parts, m.vector(g.Rank(), 0, m.uneven(g.Rank())))
	return m.gathered("AllGatherV", err, parts, 0)
}

func (m moves[T]) toRoot(ctx context.Context) error {
	g := m.g
	root := (m.n + 1) % g.Size()
	var out []T // matters only at the root
	var parts [][]T
	if g.Rank() == root {
		out, parts = buffer[T](g, g.Size()*m.n), m.parts(m.uneven)
	}
	err := Gather(ctx, g, out, m.vector(g.Rank(), root, m.n), root)
	if err := m.gathered("Gather", err, cut(out, g.Size()), root); err != nil {
		return err
	}
	err = GatherV(ctx, g, parts, m.vector(g.Rank(), root, m.uneven(g.Rank())), root)
	return m.gathered("GatherV", err, parts, root)
}

func (m moves[T]) fromRoot(ctx context.Context) error {
	g := m.g
	root := (m.n + 1) % g.Size()
	var in []T // matters only at the root
	var parts [][]T
	if g.Rank() == root {
		in = buffer[T](g, g.Size()*m.n)
		for r := range g.Size() {
			copy(in[r*m.n:], m.vector(root, r, m.n))
			parts = append(parts, m.vector(root, r, m.uneven(r)))
		}
	}
	out := buffer[T](g, m.n)
	if err := sameAs("Scatter", Scatter(ctx, g, out, in, root), out, m.had(root, g.Rank(), m.n)); err != nil {
		return err
	}
	out = make([]T, m.uneven(g.Rank()))
	return sameAs("ScatterV", ScatterV(ctx, g, out, parts, root), out, m.had(root, g.Rank(), len(out)))
}

func (m moves[T]) allToAll(ctx context.Context) error {
	g, n := m.g, min(m.n, 1000)
	in := buffer[T](g, g.Size()*n)
	for r := range g.Size() {
		copy(in[r*n:], m.vector(g.Rank(), r, n))
	}
	out := buffer[T](g, len(in))
	err := AllToAll(ctx, g, out, in)
	if err := m.gathered("AllToAll", err, cut(out, g.Size()), g.Rank()); err != nil {
		return err
	}
	in, out = nil, nil
	count := func(from, to int) int { return n / 7 * ((from + 2*to) % 3) } // some are 0
	parts := m.parts(func(r int) int { return count(r, g.Rank()) })
	var inCounts, outCounts []int
	for r := range g.Size() {
		in = append(in, m.vector(g.Rank(), r, count(g.Rank(), r))...)
		inCounts, outCounts = append(inCounts, count(g.Rank(), r)), append(outCounts, len(parts[r]))
		out = append(out, parts[r]...)
	}
	err = AllToAllV(ctx, g, out, outCounts, in, inCounts)
	rest := out
	for r, n := range outCounts {
		parts[r], rest = rest[:n], rest[n:]
	}
	return m.gathered("AllToAllV", err, parts, g.Rank())
}

func TestMoves(t *testing.T) {
	onGrid(t, func(ctx context.Context, g *Group) error {
		if err := moving(ctx, g, lengths(g), func(v int) int64 { return int64(v) }); err != nil {
			return err
		}
		if g.Size() > 4 && testing.Short() { // with more ranks, types show nothing new
			return nil
		}
		few := []int{10}
		return errors.Join(
			moving(ctx, g, few, func(v int) int { return -v }), moving(ctx, g, few, func(v int) int8 { return int8(v) }),
			moving(ctx, g, few, func(v int) int16 { return int16(-v) }), moving(ctx, g, few, func(v int) int32 { return int32(v) }),
			moving(ctx, g, few, func(v int) uint { return uint(v) }), moving(ctx, g, few, func(v int) uint8 { return uint8(v) }),
			moving(ctx, g, few, func(v int) uint16 { return uint16(v) }), moving(ctx, g, few, func(v int) uint32 { return uint32(v) }),
			moving(ctx, g, few, func(v int) uint64 { return ^uint64(v) }), moving(ctx, g, few, func(v int) uintptr { return uintptr(v) }),
			moving(ctx, g, few, func(v int) Float16 { return Float16(v) }), moving(ctx, g, few, func(v int) BFloat16 { return BFloat16(v) }),
			moving(ctx, g, few, func(v int) float32 { return float32(v) }), moving(ctx, g, few, func(v int) float64 { return 1 / float64(v) }),
			moving(ctx, g, few, func(v int) complex64 { return complex(float32(v), -1) }),
			moving(ctx, g, few, func(v int) complex128 { return complex(float64(v), -float64(v)) }))
	})
}

// Case 43 of torch's suite: what only moves keeps every bit, those of a NaN too.
func TestMovesKeepEveryBit(t *testing.T) {
	inWorldOf(t, 3, func(ctx context.Context, g *Group) error {
		return errors.Join(
			kept(ctx, g, []float32{-1e-10, math.Float32frombits(0x7f800001), math.Float32frombits(0xffc12345), float32(math.Copysign(0, -1))}),
			kept(ctx, g, []float64{-1e-100, math.Float64frombits(0x7ff0000000000001), math.SmallestNonzeroFloat64}),
			kept(ctx, g, []Float16{NewFloat16(-0.1), 0x7c01, 0xfe00}), kept(ctx, g, []BFloat16{NewBFloat16(-0.1), 0x7f81}),
			kept(ctx, g, []int8{-2}), kept(ctx, g, []uint8{129}), kept(ctx, g, []int32{-1e5}), kept(ctx, g, []int64{-1e15}))
	})
}

// kept checks that v gets from rank 1 to every other as it is.
func kept[T Element](ctx context.Context, g *Group, v []T) error {
	buf, all := make([]T, len(v)), make([]T, g.Size()*len(v))
	if g.Rank() == 1 {
		copy(buf, v)
	}
	err := errors.Join(Broadcast(ctx, g, buf, 1), AllGather(ctx, g, all, buf))
	want := reduce.Bytes(slices.Repeat(v, g.Size()))
	if err != nil || !slices.Equal(reduce.Bytes(all), want) {
		return fmt.Errorf("%T: got %x, %w, want %x", v, reduce.Bytes(all), err, want)
	}
	return nil
}

func TestInPlaceBlocks(t *testing.T) {
	onGrid(t, func(ctx context.Context, g *Group) error {
		const n = 3
		size, root := g.Size(), g.Size()-1
		all := make([]int32, n*size)
		own := cut(all, size)[g.Rank()]
		fill := func() {
			clear(all)
			for i := range own {
				own[i] = int32(10*g.Rank() + i)
			}
		}
		gathered := func(i int) int32 { return int32(10*(i/n) + i%n) }
		fill()
		if err := same("AllGather", AllGather(ctx, g, all, own), all, gathered); err != nil {
			return err
		}
		fill()
		if err := same("AllGatherV", AllGatherV(ctx, g, cut(all, size), own), all, gathered); err != nil {
			return err
		}
		result := func(i int) int32 { return int32(size * (10*g.Rank() + i)) }
		if err := same("ReduceScatter", ReduceScatter(ctx, g, own, all, Sum), own, result); err != nil {
			return err
		}
		fill()
		err := Gather(ctx, g, all, own, root)
		if g.Rank() == root {
			err = same("Gather", err, all, gathered)
		}
		if err != nil {
			return err
		}
		fill()
		err = GatherV(ctx, g, cut(all, size), own, root)
		if g.Rank() == root {
			err = same("GatherV", err, all, gathered)
		}
		if err != nil {
			return err
		}
		err = ScatterV(ctx, g, own, cut(all, size), root)
		if err := same("ScatterV", err, own, func(i int) int32 { return int32(10*g.Rank() + i) }); err != nil {
			return err
		}
		return same("Scatter", Scatter(ctx, g, own, all, root), own, func(i int) int32 { return int32(10*g.Rank() + i) })
	})
}

// cut cuts buf into size parts of equal length.
func cut[T any](buf []T, size int) [][]T {
	n := len(buf) / size
	parts := make([][]T, size)
	for i := range parts {
		parts[i] = buf[i*n : (i+1)*n]
	}
	return parts
}
