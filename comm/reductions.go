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
	if q := reducedQuickly[T](g, callAllReduce, op, len(buf), 0); q.Kernel != nil {
		if t := g.enter(ctx, q.call, q.Elem); t != nil {
			return finished(g, &q, buf, g.leave(t, t.AllReduce(reduce.Bytes(buf), q.Reduction)))
		}
		if done, err := g.flatly(ctx, q.call, q.Elem, func(c *collective) task {
			return c.flatAllReduce(reduce.Bytes(buf), reduce.Kernel(q.Kernel))
		}); done {
			return finished(g, &q, buf, err)
		}
	}
	return allReduce(g, buf, op).run(ctx)
}

// IAllReduce starts an AllReduce and returns at once.
func IAllReduce[T Element](g *Group, buf []T, op Op) *Work { return allReduce(g, buf, op).start() }

func allReduce[T Element](g *Group, buf []T, op Op) *collective {
	r := newReducing[T](g, callAllReduce, op, len(buf))
	r.begin = func() task { return r.everywhere(buf) }
	return r.collective
}

// Reduce combines buf over all ranks of g and leaves the result in buf of rank dst. Elsewhere buf keeps its input.
// buf has the same length on all ranks.
func Reduce[T Element](ctx context.Context, g *Group, buf []T, op Op, dst int) error {
	if q := reducedQuickly[T](g, callReduce, op, len(buf), dst); q.Kernel != nil && g.has(dst) {
		q.average = q.average && g.rank == dst
		if t := g.enter(ctx, q.call, q.Elem); t != nil {
			return finished(g, &q, buf, g.leave(t, t.Reduce(reduce.Bytes(buf), q.Reduction, dst)))
		}
		if done, err := g.flatly(ctx, q.call, q.Elem, func(c *collective) task {
			return c.flatReduce(reduce.Bytes(buf), reduce.Kernel(q.Kernel), dst)
		}); done {
			return finished(g, &q, buf, err)
		}
	}
	return reduceTo(g, buf, op, dst).run(ctx)
}

// IReduce starts a Reduce and returns at once.
func IReduce[T Element](g *Group, buf []T, op Op, dst int) *Work {
	return reduceTo(g, buf, op, dst).start()
}

func reduceTo[T Element](g *Group, buf []T, op Op, dst int) *collective {
	r := newReducing[T](g, callReduce, op, len(buf))
	r.root(dst)
	r.begin = func() task {
		if r.hasTeam() {
			return r.asTeam(buf, g.rank == dst, func(t *shm.Team, work []byte, red shm.Reduction) error {
				return t.Reduce(work, red, dst)
			})
		}
		if n := r.onNodes(r.red.ordered()); n != nil {
			return r.reduceOn(n, buf, dst)
		}
		n := len(buf) / r.red.width
		return r.towards(g.choose.Reduce(g.rank, g.Size(), n, r.elem, dst, r.red.ordered()), buf, g.rank == dst)
	}
	return r.collective
}

// ReduceScatter combines in over all ranks of g, cuts the result into Size blocks of len(out) elements, and leaves
// block Rank in out. len(in) == Size*len(out), the same on all ranks. out may be this rank's block of in, and must not
// overlap it otherwise.
func ReduceScatter[T Element](ctx context.Context, g *Group, out, in []T, op Op) error {
	if q := reducedQuickly[T](g, callReduceScatter, op, len(out), 0); q.Kernel != nil && len(in) == g.Size()*len(out) {
		if t := g.enter(ctx, q.call, q.Elem); t != nil {
			return finished(g, &q, out, g.leave(t, t.ReduceScatter(reduce.Bytes(out), reduce.Bytes(in), q.Reduction)))
		}
		if done, err := g.flatly(ctx, q.call, q.Elem, func(c *collective) task {
			return c.flatReduceScatter(reduce.Bytes(out), reduce.Bytes(in), reduce.Kernel(q.Kernel))
		}); done {
			return finished(g, &q, out, err)
		}
	}
	return reduceScatter(g, out, in, op).run(ctx)
}

// IReduceScatter starts a ReduceScatter and returns at once.
func IReduceScatter[T Element](g *Group, out, in []T, op Op) *Work {
	return reduceScatter(g, out, in, op).start()
}

func reduceScatter[T Element](g *Group, out, in []T, op Op) *collective {
	r := newReducing[T](g, callReduceScatter, op, len(out))
	r.wantBlocks("in", len(in), "out", len(out))
	r.begin = func() task {
		if r.hasTeam() {
			return r.teamScattered(out, in)
		}
		if n := r.onNodes(r.red.ordered()); n != nil {
			return r.reduceScatterOn(n, out, in)
		}
		return r.scattered(out, cut(in, g.Size()))
	}
	return r.collective
}

// ReduceScatterV is ReduceScatter with blocks of different lengths: it combines in[r] over all ranks of g and leaves
// the result in out of rank r. in[r] has as many elements on every rank as out has on rank r, else the call fails with
// a [MismatchError]. out may be in[Rank], and must not overlap in otherwise.
func ReduceScatterV[T Element](ctx context.Context, g *Group, out []T, in [][]T, op Op) error {
	r := newReducing[T](g, callReduceScatterV, op, len(out))
	r.call.Count = 0
	r.wantParts("in", lengthsOf(in), "out", len(out))
	for i := range in {
		r.want(r.red.width < 2 || len(in[i])%r.red.width == 0, "%v: len(in[%d]) is %d: want a multiple of %d", op, i, len(in[i]), r.red.width)
	}
	r.begin = func() task { return r.scattered(out, in) }
	return r.run(ctx)
}

// Scan combines buf over the ranks of g up to and including this one, in order of rank, and leaves the result in buf.
// buf has the same length on all ranks. Avg has no meaning here.
func Scan[T Element](ctx context.Context, g *Group, buf []T, op Op) error {
	r := newReducing[T](g, callScan, op, len(buf))
	r.begin = func() task {
		return r.inPlace(plan.DoublingScan(g.rank, g.Size(), len(buf)/r.red.width), buf, true)
	}
	return r.run(ctx)
}

// ExScan is Scan without this rank's own elements: it combines buf over the ranks below it. On rank 0, which has none
// below it, buf keeps its input.
func ExScan[T Element](ctx context.Context, g *Group, buf []T, op Op) error {
	r := newReducing[T](g, callExScan, op, len(buf))
	r.begin = func() task {
		return r.inPlace(plan.DoublingExScan(g.rank, g.Size(), len(buf)/r.red.width), buf, g.rank > 0)
	}
	return r.run(ctx)
}
