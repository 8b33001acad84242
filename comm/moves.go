package comm

import (
	"context"

	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/reduce"
)

// Barrier returns when every rank of g has called it, and all collectives that this rank has started on g have ended.
func Barrier(ctx context.Context, g *Group) error {
	if done, err := g.untyped().ShortBarrier(ctx); done {
		return public(err)
	}
	return public(g.untyped().Spare().Barrier(g.untyped()).Do(ctx))
}

// IBarrier starts a Barrier and returns at once.
func IBarrier(g *Group) *Work {
	return startCollective(func(c *core.Collective) { c.Barrier(g.untyped()) })
}

// MonitoredBarrier is a [Barrier] that names every rank that does not come: when the group's timeout is nearly over, or
// ctx's deadline if that is earlier, all ranks that have come get a [MissingRanksError]. The group then stays failed. It
// costs no more than a Barrier as long as all ranks come.
func MonitoredBarrier(ctx context.Context, g *Group) error {
	return public(g.untyped().MonitoredBarrier(ctx))
}

// Broadcast copies buf of rank src to buf of every rank of g. buf has the same length on all ranks.
func Broadcast[T Element](ctx context.Context, g *Group, buf []T, src int) error {
	if done, err := g.untyped().ShortBroadcast(ctx, typeOf[T](), len(buf), reduce.Bytes(buf), src); done {
		return public(err)
	}
	return public(g.untyped().Spare().Broadcast(g.untyped(), data(buf), src).Do(ctx))
}

// IBroadcast starts a Broadcast and returns at once.
func IBroadcast[T Element](g *Group, buf []T, src int) *Work {
	return startCollective(func(c *core.Collective) { c.Broadcast(g.untyped(), data(buf), src) })
}

// AllGather collects in of every rank, in order of rank, into out on every rank. len(out) == Size*len(in), the same on
// all ranks. in may be this rank's block of out, and must not overlap it otherwise.
func AllGather[T Element](ctx context.Context, g *Group, out, in []T) error {
	if done, err := g.untyped().ShortAllGather(ctx, typeOf[T](), len(in), reduce.Bytes(out), reduce.Bytes(in)); done {
		return public(err)
	}
	return public(g.untyped().Spare().AllGather(g.untyped(), reduce.Bytes(out), data(in)).Do(ctx))
}

// IAllGather starts an AllGather and returns at once.
func IAllGather[T Element](g *Group, out, in []T) *Work {
	return startCollective(func(c *core.Collective) { c.AllGather(g.untyped(), reduce.Bytes(out), data(in)) })
}

// AllGatherV is AllGather with blocks of different lengths: it copies in of every rank r to out[r] on every rank.
// out[r] has as many elements as in has on rank r, else the call fails with a [MismatchError]. in may be out[Rank], and
// must not overlap out otherwise.
func AllGatherV[T Element](ctx context.Context, g *Group, out [][]T, in []T) error {
	c := g.untyped().Spare()
	for _, block := range out {
		c.AddOut(reduce.Bytes(block))
	}
	return public(c.AllGatherV(g.untyped(), data(in)).Do(ctx))
}
