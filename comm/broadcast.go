package comm

import (
	"context"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/reduce"
)

// Broadcast copies buf of rank src to buf of every rank of g. buf has the same length on all ranks.
func Broadcast[T Element](ctx context.Context, g *Group, buf []T, src int) error {
	return g.do(ctx, args(new(core.Args), call.KindBroadcast, src, len(buf), buf, nil), nil)
}

// IBroadcast starts a Broadcast and returns at once.
func IBroadcast[T Element](g *Group, buf []T, src int) *Work {
	return g.start(args(new(core.Args), call.KindBroadcast, src, len(buf), buf, nil), nil)
}

// Scatter cuts in of rank src into Size blocks of len(out) elements and copies block r to out of rank r. On rank src
// len(in) == Size*len(out); on other ranks in does not matter. out has the same length on all ranks. On rank src out
// may be its own block of in; otherwise they must not overlap.
func Scatter[T Element](ctx context.Context, g *Group, out, in []T, src int) error {
	return g.do(ctx, args(new(core.Args), call.KindScatter, src, len(out), out, in), nil)
}

// IScatter starts a Scatter and returns at once.
func IScatter[T Element](g *Group, out, in []T, src int) *Work {
	return g.start(args(new(core.Args), call.KindScatter, src, len(out), out, in), nil)
}

// ScatterV is Scatter with blocks of different lengths: it copies in[r] of rank src to out of rank r. On rank src
// len(in) == Size; on other ranks in does not matter. If in[r] and out of rank r have different lengths, the call fails
// with a [MismatchError]. On rank src out may be in[Rank]; otherwise they must not overlap.
func ScatterV[T Element](ctx context.Context, g *Group, out []T, in [][]T, src int) error {
	return g.do(ctx, args(new(core.Args), call.KindScatterV, src, len(out), out, nil), &core.Blocks{Ins: reduce.BuffersOf(in)})
}

// IScatterV starts a ScatterV and returns at once.
func IScatterV[T Element](g *Group, out []T, in [][]T, src int) *Work {
	return g.start(args(new(core.Args), call.KindScatterV, src, len(out), out, nil), &core.Blocks{Ins: reduce.BuffersOf(in)})
}
