package comm

import (
	"context"

	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/reduce"
)

// AllToAll cuts in into Size blocks of equal length and sends block r to rank r. Block r of out gets the block that
// rank r sends to this rank. len(out) == len(in), a multiple of Size, the same on all ranks. out and in must not
// overlap.
func AllToAll[T Element](ctx context.Context, g *Group, out, in []T) error {
	if done, err := g.untyped().ShortAllToAll(ctx, typeOf[T](), len(in), reduce.Bytes(out), reduce.Bytes(in)); done {
		return public(err)
	}
	return public(g.untyped().Spare().AllToAll(g.untyped(), reduce.Bytes(out), data(in)).Do(ctx))
}

// IAllToAll starts an AllToAll and returns at once.
func IAllToAll[T Element](g *Group, out, in []T) *Work {
	return startCollective(func(c *core.Collective) { c.AllToAll(g.untyped(), reduce.Bytes(out), data(in)) })
}

// AllToAllV is AllToAll with blocks of different lengths: block r of in, of inCounts[r] elements, goes to rank r, and
// block r of out, of outCounts[r] elements, comes from rank r. Blocks follow each other in order of rank. If rank r's
// outCounts[s] is not rank s's inCounts[r], the call fails with a [MismatchError]. out and in must not overlap.
func AllToAllV[T Element](ctx context.Context, g *Group, out []T, outCounts []int, in []T, inCounts []int) error {
	c := g.untyped().Spare()
	return public(c.AllToAllV(g.untyped(), data(out), outCounts, data(in), inCounts).Do(ctx))
}

// IAllToAllV starts an AllToAllV and returns at once.
func IAllToAllV[T Element](g *Group, out []T, outCounts []int, in []T, inCounts []int) *Work {
	return startCollective(func(c *core.Collective) { c.AllToAllV(g.untyped(), data(out), outCounts, data(in), inCounts) })
}
