package comm

import (
	"context"

	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/reduce"
)

// Gather collects in of every rank, in order of rank, into out of rank dst, where len(out) == Size*len(in). On other
// ranks out does not matter. in has the same length on all ranks. On rank dst in may be its own block of out; otherwise
// they must not overlap.
func Gather[T Element](ctx context.Context, g *Group, out, in []T, dst int) error {
	if done, err := g.untyped().ShortGather(ctx, typeOf[T](), len(in), reduce.Bytes(out), reduce.Bytes(in), dst); done {
		return public(err)
	}
	return public(g.untyped().Spare().Gather(g.untyped(), reduce.Bytes(out), data(in), dst).Do(ctx))
}

// IGather starts a Gather and returns at once.
func IGather[T Element](g *Group, out, in []T, dst int) *Work {
	return startCollective(func(c *core.Collective) { c.Gather(g.untyped(), reduce.Bytes(out), data(in), dst) })
}

// GatherV is Gather with blocks of different lengths: it copies in of every rank r to out[r] of rank dst. If out[r] and
// in of rank r have different lengths, the call fails with a [MismatchError].
func GatherV[T Element](ctx context.Context, g *Group, out [][]T, in []T, dst int) error {
	c := g.untyped().Spare()
	for _, block := range out {
		c.AddOut(reduce.Bytes(block))
	}
	return public(c.GatherV(g.untyped(), data(in), dst).Do(ctx))
}

// AllGather collects in of every rank, in order of rank, into out on every rank. len(out) == Size*len(in), the same on
// all ranks. in may be this rank's block of out; otherwise they must not overlap.
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

// AllGatherV is AllGather with blocks of different lengths: it copies in of every rank r to out[r] on every rank. If
// out[r] and in of rank r have different lengths, the call fails with a [MismatchError]. in may be out[Rank]; otherwise
// they must not overlap.
func AllGatherV[T Element](ctx context.Context, g *Group, out [][]T, in []T) error {
	c := g.untyped().Spare()
	for _, block := range out {
		c.AddOut(reduce.Bytes(block))
	}
	return public(c.AllGatherV(g.untyped(), data(in)).Do(ctx))
}
