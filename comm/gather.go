package comm

import (
	"context"

	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/reduce"
	"github.com/gorun/gorun/comm/internal/shm"
)

// Gather collects in of every rank, in order of rank, into out of rank dst, where len(out) == Size*len(in). in has the
// same length on all ranks. Elsewhere out does not matter. in may be dst's block of out, and must not overlap it
// otherwise.
func Gather[T Element](ctx context.Context, g *Group, out, in []T, dst int) error {
	if g.has(dst) && (g.rank != dst || len(out) == g.Size()*len(in)) {
		call, elem := quickMove[T](callGather, len(in), dst)
		if t := g.enter(ctx, call, elem); t != nil {
			return g.leave(t, t.Gather(reduce.Bytes(out), reduce.Bytes(in), dst))
		}
	}
	return gatherTo(g, out, in, dst).run(ctx)
}

// IGather starts a Gather and returns at once.
func IGather[T Element](g *Group, out, in []T, dst int) *Work {
	return gatherTo(g, out, in, dst).start()
}

func gatherTo[T Element](g *Group, out, in []T, dst int) *collective {
	c := newCollective[T](g, callGather, len(in))
	c.root(dst)
	var blocks []plan.Range
	if g.rank == dst {
		c.wantBlocks("out", len(out), "in", len(in))
		blocks = equalBlocks(g.Size(), len(in))
	}
	c.begin = func() task {
		if c.hasTeam() {
			return task{team: func(t *shm.Team) error { return t.Gather(reduce.Bytes(out), reduce.Bytes(in), dst) }}
		}
		if n := c.onNodes(false); n != nil {
			return c.gatherOn(n, reduce.Bytes(out), reduce.Bytes(in), dst)
		}
		if g.choose.TogetherGather(g.Size(), len(in)*c.elem) {
			return gatherInTree(g, out, in, dst)
		}
		return task{
			plan: plan.LinearGather(g.rank, dst, len(in), blocks),
			src:  vector{buf: reduce.Bytes(in)}, dst: vector{buf: reduce.Bytes(out)},
		}
	}
	return c
}

// gatherInTree is the task of a Gather by way of other ranks.
func gatherInTree[T Element](g *Group, out, in []T, dst int) task {
	n := len(in)
	if g.rank != dst {
		out = make([]T, g.Size()*n)
	}
	copy(out[g.rank*n:], in)
	return inPlace(plan.BinomialGather(g.rank, g.Size(), n, dst), reduce.Bytes(out))
}

// GatherV is Gather with blocks of different lengths: it copies in of every rank r to out[r] of rank dst. out[r] has as
// many elements as in has on rank r, else the call fails with a [MismatchError].
func GatherV[T Element](ctx context.Context, g *Group, out [][]T, in []T, dst int) error {
	c := newCollective[T](g, callGatherV, 0)
	c.root(dst)
	if g.rank == dst {
		c.wantParts("out", lengthsOf(out), "in", len(in))
	}
	c.begin = func() task {
		v := partsOf(out, 1)
		return task{plan: plan.LinearGather(g.rank, dst, len(in), v.blocks), src: vector{buf: reduce.Bytes(in)}, dst: v}
	}
	return c.run(ctx)
}

// Scatter cuts in of rank src into Size blocks of len(out) elements and copies block r to out of rank r. At src
// len(in) == Size*len(out); elsewhere in does not matter. out has the same length on all ranks. It may be src's block of
// in, and must not overlap it otherwise.
func Scatter[T Element](ctx context.Context, g *Group, out, in []T, src int) error {
	if g.has(src) && (g.rank != src || len(in) == g.Size()*len(out)) {
		call, elem := quickMove[T](callScatter, len(out), src)
		if t := g.enter(ctx, call, elem); t != nil {
			return g.leave(t, t.Scatter(reduce.Bytes(out), reduce.Bytes(in), src))
		}
	}
	return scatterFrom(g, out, in, src).run(ctx)
}

// IScatter starts a Scatter and returns at once.
func IScatter[T Element](g *Group, out, in []T, src int) *Work {
	return scatterFrom(g, out, in, src).start()
}

func scatterFrom[T Element](g *Group, out, in []T, src int) *collective {
	c := newCollective[T](g, callScatter, len(out))
	c.root(src)
	var blocks []plan.Range
	if g.rank == src {
		c.wantBlocks("in", len(in), "out", len(out))
		blocks = equalBlocks(g.Size(), len(out))
	}
	c.begin = func() task {
		if c.hasTeam() {
			return task{team: func(t *shm.Team) error { return t.Scatter(reduce.Bytes(out), reduce.Bytes(in), src) }}
		}
		if n := c.onNodes(false); n != nil {
			return c.scatterOn(n, reduce.Bytes(out), reduce.Bytes(in), src)
		}
		if g.choose.TogetherScatter(g.Size(), len(out)*c.elem) {
			return scatterInTree(g, out, in, src)
		}
		return task{
			plan: plan.LinearScatter(g.rank, src, len(out), blocks),
			src:  vector{buf: reduce.Bytes(in)}, dst: vector{buf: reduce.Bytes(out)},
		}
	}
	return c
}

// scatterInTree is the task of a Scatter by way of other ranks.
func scatterInTree[T Element](g *Group, out, in []T, src int) task {
	n := len(out)
	if g.rank != src {
		in = make([]T, g.Size()*n)
	}
	t := inPlace(plan.BinomialScatter(g.rank, g.Size(), n, src), reduce.Bytes(in))
	t.end = func() { copy(out, in[g.rank*n:]) }
	return t
}

// ScatterV is Scatter with blocks of different lengths: it copies in[r] of rank src to out of rank r. in[r] has as many
// elements as out has on rank r, else the call fails with a [MismatchError].
func ScatterV[T Element](ctx context.Context, g *Group, out []T, in [][]T, src int) error {
	c := newCollective[T](g, callScatterV, 0)
	c.root(src)
	if g.rank == src {
		c.wantParts("in", lengthsOf(in), "out", len(out))
	}
	c.begin = func() task {
		v := partsOf(in, 1)
		return task{plan: plan.LinearScatter(g.rank, src, len(out), v.blocks), src: v, dst: vector{buf: reduce.Bytes(out)}}
	}
	return c.run(ctx)
}
