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
	return g.do(ctx, &core.Args{ // without reduction, whose call takes 4 % of the time for a short buffer
		Kind: call.KindAllReduce, Type: typeOf[T](), Count: len(buf), Op: reductionOf(op), Out: reduce.Bytes(buf),
	}, nil)
}

// IAllReduce starts an AllReduce and returns at once.
func IAllReduce[T Element](g *Group, buf []T, op Op) *Work {
	return g.start(reduction(new(core.Args), call.KindAllReduce, op, 0, buf), nil)
}

// AllReduceTo is AllReduce of in, which keeps its elements, with the result in out. len(out) == len(in), the same on all
// ranks. out may be in; otherwise they must not overlap.
func AllReduceTo[T Element](ctx context.Context, g *Group, out, in []T, op Op) error {
	return g.do(ctx, reductionTo(new(core.Args), call.KindAllReduce, op, 0, out, in), nil)
}

// IAllReduceTo starts an AllReduceTo and returns at once.
func IAllReduceTo[T Element](g *Group, out, in []T, op Op) *Work {
	return g.start(reductionTo(new(core.Args), call.KindAllReduce, op, 0, out, in), nil)
}

// Reduce combines buf of all ranks of g and leaves the result in buf of rank dst. On other ranks buf does not change.
// buf has the same length on all ranks.
func Reduce[T Element](ctx context.Context, g *Group, buf []T, op Op, dst int) error {
	return g.do(ctx, reduction(new(core.Args), call.KindReduce, op, dst, buf), nil)
}

// IReduce starts a Reduce and returns at once.
func IReduce[T Element](g *Group, buf []T, op Op, dst int) *Work {
	return g.start(reduction(new(core.Args), call.KindReduce, op, dst, buf), nil)
}

// ReduceTo is Reduce of in, which keeps its elements, with the result in out of rank dst, where len(out) == len(in). On
// other ranks out does not matter. in has the same length on all ranks. out may be in; otherwise they must not overlap.
func ReduceTo[T Element](ctx context.Context, g *Group, out, in []T, op Op, dst int) error {
	return g.do(ctx, reductionTo(new(core.Args), call.KindReduce, op, dst, out, in), nil)
}

// IReduceTo starts a ReduceTo and returns at once.
func IReduceTo[T Element](g *Group, out, in []T, op Op, dst int) *Work {
	return g.start(reductionTo(new(core.Args), call.KindReduce, op, dst, out, in), nil)
}

// ReduceScatter combines in of all ranks of g, cuts the result into Size blocks of len(out) elements, and leaves block
// Rank in out. len(in) == Size*len(out), the same on all ranks. out may be this rank's block of in; otherwise they must
// not overlap.
func ReduceScatter[T Element](ctx context.Context, g *Group, out, in []T, op Op) error {
	return g.do(ctx, reducing(args(new(core.Args), call.KindReduceScatter, 0, len(out), out, in), op), nil)
}

// IReduceScatter starts a ReduceScatter and returns at once.
func IReduceScatter[T Element](g *Group, out, in []T, op Op) *Work {
	return g.start(reducing(args(new(core.Args), call.KindReduceScatter, 0, len(out), out, in), op), nil)
}

// ReduceScatterV is ReduceScatter with blocks of different lengths: it combines in[r] of all ranks of g and leaves the
// result in out of rank r. len(in) == Size. If in[r] of a rank and out of rank r have different lengths, the call fails
// with a [MismatchError]. out may be in[Rank]; otherwise they must not overlap.
func ReduceScatterV[T Element](ctx context.Context, g *Group, out []T, in [][]T, op Op) error {
	return g.do(ctx, reducing(args(new(core.Args), call.KindReduceScatterV, 0, len(out), out, nil), op), &core.Blocks{Ins: reduce.BuffersOf(in)})
}

// IReduceScatterV starts a ReduceScatterV and returns at once.
func IReduceScatterV[T Element](g *Group, out []T, in [][]T, op Op) *Work {
	return g.start(reducing(args(new(core.Args), call.KindReduceScatterV, 0, len(out), out, nil), op), &core.Blocks{Ins: reduce.BuffersOf(in)})
}

// Scan combines buf of the ranks of g up to and including this one, in order of rank, and leaves the result in buf. buf
// has the same length on all ranks. Avg is not allowed.
func Scan[T Element](ctx context.Context, g *Group, buf []T, op Op) error {
	return g.do(ctx, reduction(new(core.Args), call.KindScan, op, 0, buf), nil)
}

// IScan starts a Scan and returns at once.
func IScan[T Element](g *Group, buf []T, op Op) *Work {
	return g.start(reduction(new(core.Args), call.KindScan, op, 0, buf), nil)
}

// ScanTo is Scan of in, which keeps its elements, with the result in out. len(out) == len(in), the same on all ranks.
// out may be in; otherwise they must not overlap.
func ScanTo[T Element](ctx context.Context, g *Group, out, in []T, op Op) error {
	return g.do(ctx, reductionTo(new(core.Args), call.KindScan, op, 0, out, in), nil)
}

// IScanTo starts a ScanTo and returns at once.
func IScanTo[T Element](g *Group, out, in []T, op Op) *Work {
	return g.start(reductionTo(new(core.Args), call.KindScan, op, 0, out, in), nil)
}

// ExScan is Scan without this rank's own elements: it combines buf of the ranks below it. On rank 0 buf does not
// change.
func ExScan[T Element](ctx context.Context, g *Group, buf []T, op Op) error {
	return g.do(ctx, reduction(new(core.Args), call.KindExScan, op, 0, buf), nil)
}

// IExScan starts an ExScan and returns at once.
func IExScan[T Element](g *Group, buf []T, op Op) *Work {
	return g.start(reduction(new(core.Args), call.KindExScan, op, 0, buf), nil)
}

// ExScanTo is ExScan of in, which keeps its elements, with the result in out. len(out) == len(in), the same on all
// ranks. On rank 0 out does not matter, and does not change. out may be in; otherwise they must not overlap.
func ExScanTo[T Element](ctx context.Context, g *Group, out, in []T, op Op) error {
	return g.do(ctx, reductionTo(new(core.Args), call.KindExScan, op, 0, out, in), nil)
}

// IExScanTo starts an ExScanTo and returns at once.
func IExScanTo[T Element](g *Group, out, in []T, op Op) *Work {
	return g.start(reductionTo(new(core.Args), call.KindExScan, op, 0, out, in), nil)
}

// AllReduceCoalesced is an AllReduce of many buffers at once, which is much faster for short ones. Every rank passes
// the same number of buffers, at least one, with the same lengths in the same order. No two of them may overlap.
func AllReduceCoalesced[T Element](ctx context.Context, g *Group, bufs [][]T, op Op) error {
	return g.do(ctx, reducing(args[T](new(core.Args), call.KindAllReduceCoalesced, 0, total(bufs), nil, nil), op), &core.Blocks{Outs: reduce.BuffersOf(bufs)})
}

// IAllReduceCoalesced starts an AllReduceCoalesced and returns at once.
func IAllReduceCoalesced[T Element](g *Group, bufs [][]T, op Op) *Work {
	return g.start(reducing(args[T](new(core.Args), call.KindAllReduceCoalesced, 0, total(bufs), nil, nil), op), &core.Blocks{Outs: reduce.BuffersOf(bufs)})
}

// reduction returns the arguments of a reduction in place.
func reduction[T Element](a *core.Args, kind call.Kind, op Op, root int, buf []T) *core.Args {
	a.Kind, a.Type, a.Count, a.Root, a.Op, a.Out = kind, typeOf[T](), len(buf), root, reductionOf(op), reduce.Bytes(buf)
	return a
}

// reductionTo returns those of a reduction whose result is apart from its operands.
func reductionTo[T Element](a *core.Args, kind call.Kind, op Op, root int, out, in []T) *core.Args {
	a.Apart = true
	return reducing(args(a, kind, root, len(in), out, in), op)
}

// reducing returns a with op.
func reducing(a *core.Args, op Op) *core.Args {
	a.Op = reductionOf(op)
	return a
}

// total returns the number of elements in bufs.
func total[T Element](bufs [][]T) (n int) {
	for _, b := range bufs {
		n += len(b)
	}
	return n
}
