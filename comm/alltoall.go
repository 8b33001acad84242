package comm

import (
	"context"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/reduce"
)

// AllToAll cuts in into Size blocks of equal length and sends block r to rank r. Block r of out gets the block that
// rank r sends to this rank. len(out) == len(in), a multiple of Size, the same on all ranks. out and in must not
// overlap.
func AllToAll[T Element](ctx context.Context, g *Group, out, in []T) error {
	return g.do(ctx, args(new(core.Args), call.KindAllToAll, 0, len(in), out, in), nil)
}

// IAllToAll starts an AllToAll and returns at once.
func IAllToAll[T Element](g *Group, out, in []T) *Work {
	return g.start(args(new(core.Args), call.KindAllToAll, 0, len(in), out, in), nil)
}

// AllToAllV is AllToAll with blocks of different lengths: block r of in, of inCounts[r] elements, goes to rank r, and
// block r of out, of outCounts[r] elements, comes from rank r. Blocks follow each other in order of rank, and fill in and
// out. If rank r's outCounts[s] is not rank s's inCounts[r], the call fails with a [MismatchError]. out and in must not
// overlap.
func AllToAllV[T Element](ctx context.Context, g *Group, out []T, outCounts []int, in []T, inCounts []int) error {
	return g.do(ctx, args(new(core.Args), call.KindAllToAllV, 0, len(in), out, in), &core.Blocks{OutCounts: outCounts, InCounts: inCounts})
}

// IAllToAllV starts an AllToAllV and returns at once.
func IAllToAllV[T Element](g *Group, out []T, outCounts []int, in []T, inCounts []int) *Work {
	return g.start(args(new(core.Args), call.KindAllToAllV, 0, len(in), out, in), &core.Blocks{OutCounts: outCounts, InCounts: inCounts})
}

// AllToAllW is AllToAllV with blocks in buffers of their own, Size of each: in[r] goes to rank r, and out[r] comes from
// rank r. If the lengths of out[r] and of what rank r sends here differ, the call fails with a [MismatchError]. No buffer
// of out may overlap another one. Other ranks may call AllToAllV. MPI: MPI_Alltoallw, with one type.
func AllToAllW[T Element](ctx context.Context, g *Group, out, in [][]T) error {
	return g.do(ctx, args[T](new(core.Args), call.KindAllToAllV, 0, 0, nil, nil), &core.Blocks{Outs: reduce.BuffersOf(out), Ins: reduce.BuffersOf(in)})
}

// IAllToAllW starts an AllToAllW and returns at once.
func IAllToAllW[T Element](g *Group, out, in [][]T) *Work {
	return g.start(args[T](new(core.Args), call.KindAllToAllV, 0, 0, nil, nil), &core.Blocks{Outs: reduce.BuffersOf(out), Ins: reduce.BuffersOf(in)})
}
