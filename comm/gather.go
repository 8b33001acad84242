package comm

import (
	"context"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/reduce"
)

// Gather collects in of every rank, in order of rank, into out of rank dst, where len(out) == Size*len(in). On other
// ranks out does not matter. in has the same length on all ranks. On rank dst in may be its own block of out; otherwise
// they must not overlap.
func Gather[T Element](ctx context.Context, g *Group, out, in []T, dst int) error {
	return g.do(ctx, args(new(core.Args), call.KindGather, dst, len(in), out, in), nil)
}

// IGather starts a Gather and returns at once.
func IGather[T Element](g *Group, out, in []T, dst int) *Work {
	return g.start(args(new(core.Args), call.KindGather, dst, len(in), out, in), nil)
}

// GatherV is Gather with blocks of different lengths: it copies in of every rank r to out[r] of rank dst, where len(out)
// == Size. On other ranks out does not matter. If out[r] and in of rank r have different lengths, the call fails with a
// [MismatchError]. On rank dst in may be out[Rank]; otherwise no two of these buffers may overlap.
func GatherV[T Element](ctx context.Context, g *Group, out [][]T, in []T, dst int) error {
	return g.do(ctx, args(new(core.Args), call.KindGatherV, dst, len(in), nil, in), &core.Blocks{Outs: reduce.BuffersOf(out)})
}

// IGatherV starts a GatherV and returns at once.
func IGatherV[T Element](g *Group, out [][]T, in []T, dst int) *Work {
	return g.start(args(new(core.Args), call.KindGatherV, dst, len(in), nil, in), &core.Blocks{Outs: reduce.BuffersOf(out)})
}

// AllGather collects in of every rank, in order of rank, into out on every rank. len(out) == Size*len(in), the same on
// all ranks. in may be this rank's block of out; otherwise they must not overlap.
func AllGather[T Element](ctx context.Context, g *Group, out, in []T) error {
	return g.do(ctx, args(new(core.Args), call.KindAllGather, 0, len(in), out, in), nil)
}

// IAllGather starts an AllGather and returns at once.
func IAllGather[T Element](g *Group, out, in []T) *Work {
	return g.start(args(new(core.Args), call.KindAllGather, 0, len(in), out, in), nil)
}

// AllGatherV is AllGather with blocks of different lengths: it copies in of every rank r to out[r] on every rank.
// len(out) == Size. If out[r] and in of rank r have different lengths, the call fails with a [MismatchError]. in may be
// out[Rank]; otherwise no two of these buffers may overlap.
func AllGatherV[T Element](ctx context.Context, g *Group, out [][]T, in []T) error {
	return g.do(ctx, args(new(core.Args), call.KindAllGatherV, 0, len(in), nil, in), &core.Blocks{Outs: reduce.BuffersOf(out)})
}

// IAllGatherV starts an AllGatherV and returns at once.
func IAllGatherV[T Element](g *Group, out [][]T, in []T) *Work {
	return g.start(args(new(core.Args), call.KindAllGatherV, 0, len(in), nil, in), &core.Blocks{Outs: reduce.BuffersOf(out)})
}
