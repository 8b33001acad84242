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
	if done, err := g.untyped().ShortAllReduce(ctx, typeOf[T](), len(buf), reduce.Bytes(buf), basic(op)); done {
		return public(err)
	}
	return public(g.untyped().Spare().AllReduce(g.untyped(), data(buf), reductionOf(op)).Do(ctx))
}

// IAllReduce starts an AllReduce and returns at once.
func IAllReduce[T Element](g *Group, buf []T, op Op) *Work {
	return startCollective(func(c *core.Collective) { c.AllReduce(g.untyped(), data(buf), reductionOf(op)) })
}

// Reduce combines buf of all ranks of g and leaves the result in buf of rank dst. On other ranks buf does not change.
// buf has the same length on all ranks.
func Reduce[T Element](ctx context.Context, g *Group, buf []T, op Op, dst int) error {
	if done, err := g.untyped().ShortReduce(ctx, typeOf[T](), len(buf), reduce.Bytes(buf), basic(op), dst); done {
		return public(err)
	}
	return public(g.untyped().Spare().Reduce(g.untyped(), data(buf), reductionOf(op), dst).Do(ctx))
}

// IReduce starts a Reduce and returns at once.
func IReduce[T Element](g *Group, buf []T, op Op, dst int) *Work {
	return startCollective(func(c *core.Collective) { c.Reduce(g.untyped(), data(buf), reductionOf(op), dst) })
}

// ReduceScatter combines in of all ranks of g, cuts the result into Size blocks of len(out) elements, and leaves block
// Rank in out. len(in) == Size*len(out), the same on all ranks. out may be this rank's block of in; otherwise they must
// not overlap.
func ReduceScatter[T Element](ctx context.Context, g *Group, out, in []T, op Op) error {
	if done, err := g.untyped().ShortReduceScatter(ctx, typeOf[T](), len(out), reduce.Bytes(out), reduce.Bytes(in), basic(op)); done {
		return public(err)
	}
	return public(g.untyped().Spare().ReduceScatter(g.untyped(), data(out), reduce.Bytes(in), reductionOf(op)).Do(ctx))
}

// IReduceScatter starts a ReduceScatter and returns at once.
func IReduceScatter[T Element](g *Group, out, in []T, op Op) *Work {
	return startCollective(func(c *core.Collective) { c.ReduceScatter(g.untyped(), data(out), reduce.Bytes(in), reductionOf(op)) })
}

// ReduceScatterV is ReduceScatter with blocks of different lengths: it combines in[r] of all ranks of g and leaves the
// result in out of rank r. If in[r] of a rank and out of rank r have different lengths, the call fails with a
// [MismatchError]. out may be in[Rank]; otherwise they must not overlap.
func ReduceScatterV[T Element](ctx context.Context, g *Group, out []T, in [][]T, op Op) error {
	c := g.untyped().Spare()
	for _, block := range in {
		c.AddIn(reduce.Bytes(block))
	}
	return public(c.ReduceScatterV(g.untyped(), data(out), reductionOf(op)).Do(ctx))
}

// Scan combines buf of the ranks of g up to and including this one, in order of rank, and leaves the result in buf. buf
// has the same length on all ranks. Avg is not allowed.
func Scan[T Element](ctx context.Context, g *Group, buf []T, op Op) error {
	return public(g.untyped().Spare().Scan(g.untyped(), call.KindScan, data(buf), reductionOf(op)).Do(ctx))
}

// ExScan is Scan without this rank's own elements: it combines buf of the ranks below it. On rank 0 buf does not
// change.
func ExScan[T Element](ctx context.Context, g *Group, buf []T, op Op) error {
	return public(g.untyped().Spare().Scan(g.untyped(), call.KindExScan, data(buf), reductionOf(op)).Do(ctx))
}

// AllReduceCoalesced is an AllReduce of many buffers at once, which is much faster for short ones. Every rank passes
// the same number of buffers, at least one, with the same lengths in the same order.
func AllReduceCoalesced[T Element](ctx context.Context, g *Group, bufs [][]T, op Op) error {
	return public(allReduceCoalesced(g.untyped().Spare(), g, bufs, op).Do(ctx))
}

// IAllReduceCoalesced starts an AllReduceCoalesced and returns at once.
func IAllReduceCoalesced[T Element](g *Group, bufs [][]T, op Op) *Work {
	return startCollective(func(c *core.Collective) { allReduceCoalesced(c, g, bufs, op) })
}

func allReduceCoalesced[T Element](c *core.Collective, g *Group, bufs [][]T, op Op) *core.Collective {
	all := core.Data{Type: typeOf[T]()}
	for _, b := range bufs {
		c.AddOut(data(b).Bytes)
		all.Count += len(b)
	}
	return c.AllReduceCoalesced(g.untyped(), all, reductionOf(op))
}
