package comm

import (
	"context"

	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/reduce"
)

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

// Scatter cuts in of rank src into Size blocks of len(out) elements and copies block r to out of rank r. On rank src
// len(in) == Size*len(out); on other ranks in does not matter. out has the same length on all ranks. On rank src out
// may be its own block of in; otherwise they must not overlap.
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

// ScatterV is Scatter with blocks of different lengths: it copies in[r] of rank src to out of rank r. If in[r] and out
// of rank r have different lengths, the call fails with a [MismatchError].
func ScatterV[T Element](ctx context.Context, g *Group, out []T, in [][]T, src int) error {
	c := g.untyped().Spare()
	for _, block := range in {
		c.AddIn(reduce.Bytes(block))
	}
	return public(c.ScatterV(g.untyped(), data(out), src).Do(ctx))
}
