package comm

import (
	"context"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/reduce"
)

// AllReduce combines buf of all ranks of g, element by element, and leaves the result in buf on every rank. buf has the
// same length on all ranks.
func AllReduce[T Element](ctx context.Context, g *Group, buf []T, op Op) error {
	return g.do(ctx, &core.Args{
		Kind: call.KindAllReduce, Type: typeOf[T](), Count: len(buf),
		Op: reductionOf(op), Out: reduce.Bytes(buf),
	}, nil)
}

// IAllReduce starts an AllReduce and returns at once.
func IAllReduce[T Element](g *Group, buf []T, op Op) *Work {
	return g.start(&core.Args{
		Kind: call.KindAllReduce, Type: typeOf[T](), Count: len(buf),
		Op: reductionOf(op), Out: reduce.Bytes(buf),
	}, nil)
}

// Reduce combines buf of all ranks of g and leaves the result in buf of rank dst. On other ranks buf does not change.
// buf has the same length on all ranks.
func Reduce[T Element](ctx context.Context, g *Group, buf []T, op Op, dst int) error {
	return g.do(ctx, &core.Args{
		Kind: call.KindReduce, Type: typeOf[T](), Count: len(buf),
		Root: dst, Op: reductionOf(op), Out: reduce.Bytes(buf),
	}, nil)
}

// IReduce starts a Reduce and returns at once.
func IReduce[T Element](g *Group, buf []T, op Op, dst int) *Work {
	return g.start(&core.Args{
		Kind: call.KindReduce, Type: typeOf[T](), Count: len(buf),
		Root: dst, Op: reductionOf(op), Out: reduce.Bytes(buf),
	}, nil)
}

// ReduceScatter combines in of all ranks of g, cuts the result into Size blocks of len(out) elements, and leaves block
// Rank in out. len(in) == Size*len(out), the same on all ranks. out may be this rank's block of in; otherwise they must
// not overlap.
func ReduceScatter[T Element](ctx context.Context, g *Group, out, in []T, op Op) error {
	return g.do(ctx, &core.Args{
		Kind: call.KindReduceScatter, Type: typeOf[T](), Count: len(out),
		Op: reductionOf(op), Out: reduce.Bytes(out), In: reduce.Bytes(in),
	}, nil)
}

// IReduceScatter starts a ReduceScatter and returns at once.
func IReduceScatter[T Element](g *Group, out, in []T, op Op) *Work {
	return g.start(&core.Args{
		Kind: call.KindReduceScatter, Type: typeOf[T](), Count: len(out),
		Op: reductionOf(op), Out: reduce.Bytes(out), In: reduce.Bytes(in),
	}, nil)
}

// ReduceScatterV is ReduceScatter with blocks of different lengths: it combines in[r] of all ranks of g and leaves the
// result in out of rank r. If in[r] of a rank and out of rank r have different lengths, the call fails with a
// [MismatchError]. out may be in[Rank]; otherwise they must not overlap.
func ReduceScatterV[T Element](ctx context.Context, g *Group, out []T, in [][]T, op Op) error {
	return g.do(ctx, &core.Args{
		Kind: call.KindReduceScatterV, Type: typeOf[T](), Count: len(out),
		Op: reductionOf(op), Out: reduce.Bytes(out),
	}, &core.Blocks{Ins: reduce.BuffersOf(in)})
}

// Scan combines buf of the ranks of g up to and including this one, in order of rank, and leaves the result in buf. buf
// has the same length on all ranks. Avg is not allowed.
func Scan[T Element](ctx context.Context, g *Group, buf []T, op Op) error {
	return g.do(ctx, &core.Args{
		Kind: call.KindScan, Type: typeOf[T](), Count: len(buf),
		Op: reductionOf(op), Out: reduce.Bytes(buf),
	}, nil)
}

// ExScan is Scan without this rank's own elements: it combines buf of the ranks below it. On rank 0 buf does not
// change.
func ExScan[T Element](ctx context.Context, g *Group, buf []T, op Op) error {
	return g.do(ctx, &core.Args{
		Kind: call.KindExScan, Type: typeOf[T](), Count: len(buf),
		Op: reductionOf(op), Out: reduce.Bytes(buf),
	}, nil)
}

// AllReduceCoalesced is an AllReduce of many buffers at once, which is much faster for short ones. Every rank passes
// the same number of buffers, at least one, with the same lengths in the same order.
func AllReduceCoalesced[T Element](ctx context.Context, g *Group, bufs [][]T, op Op) error {
	return g.do(ctx, &core.Args{
		Kind: call.KindAllReduceCoalesced, Type: typeOf[T](), Count: total(bufs),
		Op: reductionOf(op),
	}, &core.Blocks{Outs: reduce.BuffersOf(bufs)})
}

// IAllReduceCoalesced starts an AllReduceCoalesced and returns at once.
func IAllReduceCoalesced[T Element](g *Group, bufs [][]T, op Op) *Work {
	return g.start(&core.Args{
		Kind: call.KindAllReduceCoalesced, Type: typeOf[T](), Count: total(bufs),
		Op: reductionOf(op),
	}, &core.Blocks{Outs: reduce.BuffersOf(bufs)})
}

// total returns the number of elements in bufs.
func total[T Element](bufs [][]T) (n int) {
	for _, b := range bufs {
		n += len(b)
	}
	return n
}
