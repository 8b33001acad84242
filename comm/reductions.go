package comm

import (
	"context"

	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/reduce"
	"github.com/gorun/gorun/comm/internal/shm"
)

// AllReduce combines buf over all ranks of g, element by element, and leaves the result in buf on every rank.
// buf has the same length on all ranks.
func AllReduce[T Element](ctx context.Context, g *Group, buf []T, op Op) error {
	if t := g.mates(); t != nil {
		if q := reducedQuickly[T](g, callAllReduce, op, len(buf), 0); q.Kernel != nil && g.enter(ctx, t, q.call, q.Elem) {
			return finished(g, &q, buf, g.leave(t, t.AllReduce(reduce.Bytes(buf), q.Reduction)))
		}
	}
	return allReduce(g.spare(), g, buf, op).do(ctx)
}

// IAllReduce starts an AllReduce and returns at once.
func IAllReduce[T Element](g *Group, buf []T, op Op) *Work {
	return allReduce(new(collective), g, buf, op).start()
}

func allReduce[T Element](c *collective, g *Group, buf []T, op Op) *collective {
	c.reduces(g, callAllReduce, typeOf[T](), op, len(buf))
	c.out.buf = reduce.Bytes(buf)
	c.begin = (*collective).allReduceTask
	return c
}

func (c *collective) allReduceTask() task { return c.everywhere(c.out.buf) }

// Reduce combines buf over all ranks of g and leaves the result in buf of rank dst. Elsewhere buf keeps its input.
// buf has the same length on all ranks.
func Reduce[T Element](ctx context.Context, g *Group, buf []T, op Op, dst int) error {
	if t := g.mates(); t != nil && g.has(dst) {
		if q := reducedQuickly[T](g, callReduce, op, len(buf), dst); q.Kernel != nil && g.enter(ctx, t, q.call, q.Elem) {
			q.average = q.average && g.rank == dst
			return finished(g, &q, buf, g.leave(t, t.Reduce(reduce.Bytes(buf), q.Reduction, dst)))
		}
	}
	return reduceTo(g.spare(), g, buf, op, dst).do(ctx)
}

// IReduce starts a Reduce and returns at once.
func IReduce[T Element](g *Group, buf []T, op Op, dst int) *Work {
	return reduceTo(new(collective), g, buf, op, dst).start()
}

func reduceTo[T Element](c *collective, g *Group, buf []T, op Op, dst int) *collective {
	c.reduces(g, callReduce, typeOf[T](), op, len(buf))
	c.root(dst)
	c.out.buf = reduce.Bytes(buf)
	c.begin = (*collective).reduceTask
	return c
}

// reduceTask is the task of leaving the reduction of out in it on the root.
func (c *collective) reduceTask() task {
	buf, dst := c.out.buf, int(c.call.Root)
	if c.hasTeam() {
		return c.asTeam(buf, c.g.rank == dst, func(c *collective, t *shm.Team) error {
			return t.Reduce(c.operands, c.folding(), int(c.call.Root))
		})
	}
	if c.byNodes(c.red.ordered()) {
		return c.inStages(buf, c.g.rank == dst, (*collective).reduceOn)
	}
	return c.towards(c.planned(func() plan.Plan {
		return c.g.choose.Reduce(c.g.rank, c.g.Size(), c.values(buf), c.elem, dst, c.red.ordered())
	}), buf, c.g.rank == dst)
}

// ReduceScatter combines in over all ranks of g, cuts the result into Size blocks of len(out) elements, and leaves
// block Rank in out. len(in) == Size*len(out), the same on all ranks. out may be this rank's block of in, and must not
// overlap it otherwise.
func ReduceScatter[T Element](ctx context.Context, g *Group, out, in []T, op Op) error {
	if t := g.mates(); t != nil && len(in) == g.Size()*len(out) {
		if q := reducedQuickly[T](g, callReduceScatter, op, len(out), 0); q.Kernel != nil && g.enter(ctx, t, q.call, q.Elem) {
			return finished(g, &q, out, g.leave(t, t.ReduceScatter(reduce.Bytes(out), reduce.Bytes(in), q.Reduction)))
		}
	}
	return reduceScatter(g.spare(), g, out, in, op).do(ctx)
}

// IReduceScatter starts a ReduceScatter and returns at once.
func IReduceScatter[T Element](g *Group, out, in []T, op Op) *Work {
	return reduceScatter(new(collective), g, out, in, op).start()
}

func reduceScatter[T Element](c *collective, g *Group, out, in []T, op Op) *collective {
	c.reduces(g, callReduceScatter, typeOf[T](), op, len(out))
	c.wantBlocks("in", len(in), "out", len(out))
	c.out.buf, c.in.buf = reduce.Bytes(out), reduce.Bytes(in)
	c.begin = (*collective).reduceScatterTask
	return c
}

func (c *collective) reduceScatterTask() task {
	if c.hasTeam() {
		return c.teamScattered()
	}
	if c.byNodes(c.red.ordered()) {
		return task{nodes: (*collective).reduceScatterOn, end: (*collective).finish}
	}
	return c.scattered()
}

// ReduceScatterV is ReduceScatter with blocks of different lengths: it combines in[r] over all ranks of g and leaves
// the result in out of rank r. in[r] has as many elements on every rank as out has on rank r, else the call fails with
// a [MismatchError]. out may be in[Rank], and must not overlap in otherwise.
func ReduceScatterV[T Element](ctx context.Context, g *Group, out []T, in [][]T, op Op) error {
	c := g.spare()
	c.reduces(g, callReduceScatterV, typeOf[T](), op, len(out))
	c.call.Count = 0
	wantParts(c, "in", in, "out", len(out))
	wantValues(c, "in", op, in)
	setParts(&c.in, in, max(c.red.width, 1))
	c.out.buf = reduce.Bytes(out)
	c.begin = (*collective).scattered
	return c.do(ctx)
}

// Scan combines buf over the ranks of g up to and including this one, in order of rank, and leaves the result in buf.
// buf has the same length on all ranks. Avg has no meaning here.
func Scan[T Element](ctx context.Context, g *Group, buf []T, op Op) error {
	c := g.spare()
	c.reduces(g, callScan, typeOf[T](), op, len(buf))
	c.out.buf = reduce.Bytes(buf)
	c.begin = (*collective).scanTask
	return c.do(ctx)
}

func (c *collective) scanTask() task { return c.scanned(plan.DoublingScan, true) }

// ExScan is Scan without this rank's own elements: it combines buf over the ranks below it. On rank 0, which has none
// below it, buf keeps its input.
func ExScan[T Element](ctx context.Context, g *Group, buf []T, op Op) error {
	c := g.spare()
	c.reduces(g, callExScan, typeOf[T](), op, len(buf))
	c.out.buf = reduce.Bytes(buf)
	c.begin = (*collective).exScanTask
	return c.do(ctx)
}

func (c *collective) exScanTask() task { return c.scanned(plan.DoublingExScan, c.g.rank > 0) }

// scanned is the task of running what scan plans on out, in which the result is then left if this rank is to have one.
func (c *collective) scanned(scan func(rank, size, n int) plan.Plan, result bool) task {
	return c.inPlace(c.planned(func() plan.Plan {
		return scan(c.g.rank, c.g.Size(), c.values(c.out.buf))
	}), c.out.buf, result)
}
