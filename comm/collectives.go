package comm

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/gorun/gorun/comm/internal/endpoint"
	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/reduce"
)

// AllReduce combines buf over all ranks of g, element by element, and leaves the result in buf on every rank.
// buf has the same length on all ranks.
func AllReduce[T Element](ctx context.Context, g *Group, buf []T, op Op) error {
	r, err := newReducing[T](g, callAllReduce, op, len(buf), 0)
	if err != nil {
		return err
	}
	work, done := r.prepare(buf, true)
	r.plan = plan.AllReduce(g.rank, g.Size(), len(buf), r.elem)
	r.src, r.dst = work, work
	if err := g.do(ctx, &r.collective); err != nil {
		return err
	}
	r.average(work)
	done(work)
	return nil
}

// Reduce combines buf over all ranks of g and leaves the result in buf of rank dst. Elsewhere buf keeps its input.
// buf has the same length on all ranks.
func Reduce[T Element](ctx context.Context, g *Group, buf []T, op Op, dst int) error {
	if g.WorldRank(dst) < 0 {
		return badArgument("Reduce", "no rank %d in a group of %d", dst, g.Size())
	}
	r, err := newReducing[T](g, callReduce, op, len(buf), dst)
	if err != nil {
		return err
	}
	work, done := r.prepare(buf, g.rank == dst)
	r.plan = plan.BinomialReduce(g.rank, g.Size(), len(buf), dst)
	r.src, r.dst = work, work
	if err := g.do(ctx, &r.collective); err != nil || g.rank != dst {
		return err
	}
	r.average(work)
	done(work)
	return nil
}

// ReduceScatter combines in over all ranks of g, cuts the result into Size blocks of len(out) elements, and leaves
// block Rank in out. len(in) == Size*len(out). out may be this rank's block of in, and must not overlap it otherwise.
func ReduceScatter[T Element](ctx context.Context, g *Group, out, in []T, op Op) error {
	if len(in) != g.Size()*len(out) {
		return badArgument("ReduceScatter", "len(in) is %d: want Size × len(out) = %d × %d", len(in), g.Size(), len(out))
	}
	r, err := newReducing[T](g, callReduceScatter, op, len(out), 0)
	if err != nil {
		return err
	}
	blocks := equalBlocks(g.Size(), len(out))
	r.plan = plan.PairwiseReduceScatter(g.rank, blocks)
	r.base = blocks[g.rank].Lo
	r.src = reduce.Bytes(in)
	if r.wide || r.red.scaled {
		r.src, _ = r.prepare(in, false)
	}
	r.dst = reduce.Bytes(out)
	if r.wide {
		r.dst = reduce.Bytes(make([]float32, len(out)))
	}
	copy(r.dst, r.src[r.base*r.elem:])
	if err := g.do(ctx, &r.collective); err != nil {
		return err
	}
	r.average(r.dst)
	if r.wide {
		narrow(out, reduce.View[float32](r.dst))
	}
	return nil
}

// Broadcast copies buf of rank src to buf of every rank of g. buf has the same length on all ranks.
func Broadcast[T Element](ctx context.Context, g *Group, buf []T, src int) error {
	if g.WorldRank(src) < 0 {
		return badArgument("Broadcast", "no rank %d in a group of %d", src, g.Size())
	}
	c := newCollective[T](callBroadcast, len(buf))
	c.call.Root = int32(src)
	c.plan = plan.BinomialBroadcast(g.rank, g.Size(), len(buf), src)
	c.src = reduce.Bytes(buf)
	c.dst = c.src
	return g.do(ctx, &c)
}

// AllGather collects in of every rank, in order of rank, into out on every rank. len(out) == Size*len(in). in may be
// this rank's block of out, and must not overlap it otherwise.
func AllGather[T Element](ctx context.Context, g *Group, out, in []T) error {
	if len(out) != g.Size()*len(in) {
		return badArgument("AllGather", "len(out) is %d: want Size × len(in) = %d × %d", len(out), g.Size(), len(in))
	}
	c := newCollective[T](callAllGather, len(in))
	copy(out[g.rank*len(in):], in)
	c.plan = plan.RingAllGather(g.rank, equalBlocks(g.Size(), len(in)))
	c.src = reduce.Bytes(out)
	c.dst = c.src
	return g.do(ctx, &c)
}

// Barrier returns when every rank of g has called it.
func Barrier(ctx context.Context, g *Group) error {
	return g.do(ctx, &collective{
		call: endpoint.Call{Op: uint8(callBarrier)},
		plan: plan.DisseminationBarrier(g.rank, g.Size()),
		elem: 1,
	})
}

// do runs c as the group's next collective.
func (g *Group) do(ctx context.Context, c *collective) error {
	if err := ctx.Err(); err != nil { // not started: the group goes on
		return fmt.Errorf("comm: %v: %w", callKind(c.call.Op), err)
	}
	return g.run(ctx, g.enter(), c)
}

func newCollective[T Element](kind callKind, n int) collective {
	var e T
	return collective{
		call: endpoint.Call{Op: uint8(kind), Type: uint8(typeOf[T]()), Count: uint64(n)},
		elem: int(unsafe.Sizeof(e)),
	}
}

func equalBlocks(size, n int) []plan.Range {
	blocks := make([]plan.Range, size)
	for i := range blocks {
		blocks[i] = plan.Range{Lo: i * n, Hi: (i + 1) * n}
	}
	return blocks
}

// reducing is a collective that combines elements of type T.
type reducing[T Element] struct {
	collective
	g    *Group
	red  reduction
	typ  reduce.Type // what is computed in: the element type, or Float32 when wide
	wide bool        // half floats that are added or multiplied: computed in float32, rounded once
}

func newReducing[T Element](g *Group, kind callKind, op Op, n, root int) (*reducing[T], error) {
	r := &reducing[T]{collective: newCollective[T](kind, n), g: g, typ: typeOf[T]()}
	var err error
	if r.red, r.kernel, err = resolve(op, r.typ); err != nil {
		return nil, &ArgumentError{Op: kind.String(), Err: err}
	}
	r.call.Reduce, r.call.Root = r.red.code, int32(root)
	if half := r.typ == reduce.Float16 || r.typ == reduce.BFloat16; half && (r.red.kernel == reduce.Sum || r.red.kernel == reduce.Prod) {
		r.wide, r.typ, r.elem = true, reduce.Float32, 4
		r.kernel = reduce.For(reduce.Float32, r.red.kernel)
	}
	return r, nil
}

// prepare returns the bytes to compute on: buf itself if it may be overwritten, else a copy, widened and scaled
// where the operation asks for it. done puts the result of wide computation back into buf.
func (r *reducing[T]) prepare(buf []T, mayOverwrite bool) (work []byte, done func([]byte)) {
	done = func([]byte) {}
	switch {
	case r.wide:
		work = reduce.Bytes(widen(buf))
		done = func(b []byte) { narrow(buf, reduce.View[float32](b)) }
	case mayOverwrite:
		work = reduce.Bytes(buf)
	default:
		work = reduce.Bytes(append([]T(nil), buf...))
	}
	if r.red.scaled {
		reduce.Scale(r.typ, work, r.red.scale)
	}
	return work, done
}

func (r *reducing[T]) average(work []byte) {
	if r.red.average {
		reduce.Divide(r.typ, work, r.g.Size())
	}
}

// widen and narrow convert between half floats and float32; T is Float16 or BFloat16.
func widen[T Element](half []T) []float32 {
	wide := make([]float32, len(half))
	switch half := any(half).(type) {
	case []Float16:
		for i, h := range half {
			wide[i] = h.Float32()
		}
	case []BFloat16:
		for i, h := range half {
			wide[i] = h.Float32()
		}
	}
	return wide
}

func narrow[T Element](half []T, wide []float32) {
	switch half := any(half).(type) {
	case []Float16:
		for i, f := range wide {
			half[i] = NewFloat16(f)
		}
	case []BFloat16:
		for i, f := range wide {
			half[i] = NewBFloat16(f)
		}
	}
}
