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
	if t := g.mates(); t != nil && g.has(dst) && (g.rank != dst || len(out) == g.Size()*len(in)) {
		if call, elem := quickMove[T](callGather, len(in), dst); g.enter(ctx, t, call, elem) {
			return g.leave(t, t.Gather(reduce.Bytes(out), reduce.Bytes(in), dst))
		}
	}
	return gatherTo(g.spare(), g, out, in, dst).do(ctx)
}

// IGather starts a Gather and returns at once.
func IGather[T Element](g *Group, out, in []T, dst int) *Work {
	return gatherTo(new(collective), g, out, in, dst).start()
}

func gatherTo[T Element](c *collective, g *Group, out, in []T, dst int) *collective {
	c.is(g, callGather, typeOf[T](), len(in))
	c.root(dst)
	if c.g.rank == dst {
		c.wantBlocks("out", len(out), "in", len(in))
	}
	c.out.buf, c.in.buf = reduce.Bytes(out), reduce.Bytes(in)
	c.begin = (*collective).gatherTask
	return c
}

func (c *collective) gatherTask() task {
	out, in, dst := c.out.buf, c.in.buf, int(c.call.Root)
	switch {
	case c.hasTeam():
		return task{team: func(c *collective, t *shm.Team) error {
			return t.Gather(c.out.buf, c.in.buf, int(c.call.Root))
		}}
	case c.byNodes(false):
		return task{nodes: (*collective).gatherOn}
	case c.g.choose.TogetherGather(c.g.Size(), len(in)):
		return c.gatherInTree(out, in, dst)
	}
	return task{
		plan: c.planned(func() plan.Plan {
			n := len(in) / c.elem
			return plan.LinearGather(nil, c.g.rank, dst, n, equalBlocks(c.g.Size(), n))
		}),
		src: vector{buf: in}, dst: vector{buf: out},
	}
}

// gatherInTree is the task of a Gather by way of other ranks.
func (c *collective) gatherInTree(out, in []byte, dst int) task {
	rank, size := c.g.rank, c.g.Size()
	if rank != dst {
		out = c.g.memory(size * len(in))
	}
	copy(out[rank*len(in):], in)
	return inPlace(c.planned(func() plan.Plan { return plan.BinomialGather(rank, size, len(in)/c.elem, dst) }), out)
}

// GatherV is Gather with blocks of different lengths: it copies in of every rank r to out[r] of rank dst. out[r] has as
// many elements as in has on rank r, else the call fails with a [MismatchError].
func GatherV[T Element](ctx context.Context, g *Group, out [][]T, in []T, dst int) error {
	c := g.spare()
	c.is(g, callGatherV, typeOf[T](), 0)
	c.root(dst)
	if c.g.rank == dst {
		wantParts(c, "out", out, "in", len(in))
		setParts(&c.out, out, 1)
	}
	c.in.setBlocks(reduce.Bytes(in), len(in))
	c.begin = (*collective).gatherVTask
	return c.do(ctx)
}

func (c *collective) gatherVTask() task {
	c.g.anew = plan.LinearGather(c.g.anew[:0], c.g.rank, int(c.call.Root), c.in.blocks[0].Len(), c.out.blocks)
	return task{plan: c.g.anew, src: c.in, dst: c.out}
}

// Scatter cuts in of rank src into Size blocks of len(out) elements and copies block r to out of rank r. At src
// len(in) == Size*len(out); elsewhere in does not matter. out has the same length on all ranks. It may be src's block of
// in, and must not overlap it otherwise.
func Scatter[T Element](ctx context.Context, g *Group, out, in []T, src int) error {
	if t := g.mates(); t != nil && g.has(src) && (g.rank != src || len(in) == g.Size()*len(out)) {
		if call, elem := quickMove[T](callScatter, len(out), src); g.enter(ctx, t, call, elem) {
			return g.leave(t, t.Scatter(reduce.Bytes(out), reduce.Bytes(in), src))
		}
	}
	return scatterFrom(g.spare(), g, out, in, src).do(ctx)
}

// IScatter starts a Scatter and returns at once.
func IScatter[T Element](g *Group, out, in []T, src int) *Work {
	return scatterFrom(new(collective), g, out, in, src).start()
}

func scatterFrom[T Element](c *collective, g *Group, out, in []T, src int) *collective {
	c.is(g, callScatter, typeOf[T](), len(out))
	c.root(src)
	if c.g.rank == src {
		c.wantBlocks("in", len(in), "out", len(out))
	}
	c.out.buf, c.in.buf = reduce.Bytes(out), reduce.Bytes(in)
	c.begin = (*collective).scatterTask
	return c
}

func (c *collective) scatterTask() task {
	out, in, src := c.out.buf, c.in.buf, int(c.call.Root)
	switch {
	case c.hasTeam():
		return task{team: func(c *collective, t *shm.Team) error {
			return t.Scatter(c.out.buf, c.in.buf, int(c.call.Root))
		}}
	case c.byNodes(false):
		return task{nodes: (*collective).scatterOn}
	case c.g.choose.TogetherScatter(c.g.Size(), len(out)):
		return c.scatterInTree(out, in, src)
	}
	return task{
		plan: c.planned(func() plan.Plan {
			n := len(out) / c.elem
			return plan.LinearScatter(nil, c.g.rank, src, n, equalBlocks(c.g.Size(), n))
		}),
		src: vector{buf: in}, dst: vector{buf: out},
	}
}

// scatterInTree is the task of a Scatter by way of other ranks.
func (c *collective) scatterInTree(out, in []byte, src int) task {
	rank, size, n := c.g.rank, c.g.Size(), len(out)
	if rank != src {
		in = c.g.memory(size * n)
	}
	c.in.buf = in[rank*n:][:n]
	t := inPlace(c.planned(func() plan.Plan { return plan.BinomialScatter(rank, size, n/c.elem, src) }), in)
	t.end = func(c *collective) { copy(c.out.buf, c.in.buf) }
	return t
}

// ScatterV is Scatter with blocks of different lengths: it copies in[r] of rank src to out of rank r. in[r] has as many
// elements as out has on rank r, else the call fails with a [MismatchError].
func ScatterV[T Element](ctx context.Context, g *Group, out []T, in [][]T, src int) error {
	c := g.spare()
	c.is(g, callScatterV, typeOf[T](), 0)
	c.root(src)
	if c.g.rank == src {
		wantParts(c, "in", in, "out", len(out))
		setParts(&c.in, in, 1)
	}
	c.out.setBlocks(reduce.Bytes(out), len(out))
	c.begin = (*collective).scatterVTask
	return c.do(ctx)
}

func (c *collective) scatterVTask() task {
	c.g.anew = plan.LinearScatter(c.g.anew[:0], c.g.rank, int(c.call.Root), c.out.blocks[0].Len(), c.in.blocks)
	return task{plan: c.g.anew, src: c.in, dst: c.out}
}
