package comm

import (
	"context"

	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/reduce"
)

// Gather collects in of every rank, in order of rank, into out of rank dst, where len(out) == Size*len(in). in has the
// same length on all ranks. Elsewhere out does not matter. in may be dst's block of out, and must not overlap it
// otherwise.
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

// GatherV is Gather with blocks of different lengths: it copies in of every rank r to out[r] of rank dst. out[r] has as
// many elements as in has on rank r, else the call fails with a [MismatchError].
func GatherV[T Element](ctx context.Context, g *Group, out [][]T, in []T, dst int) error {
	c := g.untyped().Spare()
	for _, block := range out {
		c.AddOut(reduce.Bytes(block))
	}
	return public(c.GatherV(g.untyped(), data(in), dst).Do(ctx))
}

// Scatter cuts in of rank src into Size blocks of len(out) elements and copies block r to out of rank r. At src
// len(in) == Size*len(out); elsewhere in does not matter. out has the same length on all ranks. It may be src's block of
// in, and must not overlap it otherwise.
func Scatter[T Element](ctx context.Context, g *Group, out, in []T, src int) error {
	if done, err := g.untyped().ShortScatter(ctx, typeOf[T](), len(out), reduce.Bytes(out), reduce.Bytes(in), src); done {
		return public(err)
	}
	return public(g.untyped().Spare().Scatter(g.untyped(), data(out), reduce.Bytes(in), src).Do(ctx))
}

// IScatter starts a Scatter and returns at once.
func IScatter[T Element](g *Group, out, in []T, src int) *Work {
	return startCollective(func(c *core.Collective) { c.Scatter(g.untyped(), data(out), reduce.Bytes(in), src) })
}

// ScatterV is Scatter with blocks of different lengths: it copies in[r] of rank src to out of rank r. in[r] has as many
// elements as out has on rank r, else the call fails with a [MismatchError].
func ScatterV[T Element](ctx context.Context, g *Group, out []T, in [][]T, src int) error {
	c := g.untyped().Spare()
	for _, block := range in {
		c.AddIn(reduce.Bytes(block))
	}
	return public(c.ScatterV(g.untyped(), data(out), src).Do(ctx))
}
