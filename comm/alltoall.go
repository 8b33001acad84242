package comm

import (
	"context"

	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/reduce"
	"github.com/gorun/gorun/comm/internal/shm"
)

// AllToAll cuts in into Size blocks of equal length and copies block r to rank r; block r of out gets what rank r has
// sent here. len(out) == len(in), a multiple of Size, the same on all ranks. out and in must not overlap.
func AllToAll[T Element](ctx context.Context, g *Group, out, in []T) error {
	if t := g.mates(); t != nil && len(out) == len(in) && len(in)%g.Size() == 0 {
		if call, elem := quickMove[T](callAllToAll, len(in), 0); g.enter(ctx, t, call, elem) {
			return g.leave(t, t.AllToAll(reduce.Bytes(out), reduce.Bytes(in)))
		}
	}
	return allToAll(g.spare(), g, out, in).do(ctx)
}

// IAllToAll starts an AllToAll and returns at once.
func IAllToAll[T Element](g *Group, out, in []T) *Work {
	return allToAll(new(collective), g, out, in).start()
}

func allToAll[T Element](c *collective, g *Group, out, in []T) *collective {
	c.is(g, callAllToAll, typeOf[T](), len(in))
	if len(out) != len(in) {
		c.refusef("len(out) is %d: want len(in) = %d", len(out), len(in))
	}
	if size := c.g.Size(); c.err == nil && len(in)%size != 0 {
		c.refusef("len(in) is %d: want a multiple of Size = %d", len(in), size)
	}
	c.out.buf, c.in.buf = reduce.Bytes(out), reduce.Bytes(in)
	c.begin = (*collective).allToAllTask
	return c
}

func (c *collective) allToAllTask() task {
	in := c.in.buf
	switch block := len(in) / c.g.Size(); {
	case c.hasTeam():
		return task{team: func(c *collective, t *shm.Team) error { return t.AllToAll(c.out.buf, c.in.buf) }}
	case c.byNodes(false):
		return task{nodes: (*collective).allToAllOn}
	case c.g.choose.TogetherAllToAll(c.g.Size(), block):
		return c.allToAllTogether(in, block)
	}
	return task{
		plan: c.planned(func() plan.Plan {
			blocks := equalBlocks(c.g.Size(), len(in)/c.g.Size()/c.elem)
			return plan.PairwiseAllToAll(nil, c.g.rank, blocks, blocks)
		}),
		src: c.in, dst: c.out,
	}
}

// allToAllTogether is the task of an AllToAll of blocks of n bytes that travel together.
func (c *collective) allToAllTogether(in []byte, n int) task {
	rank, size := c.g.rank, c.g.Size()
	c.operands = c.g.memory((size + size/2*2) * n)
	copy(c.operands[copy(c.operands, in[rank*n:]):], in[:rank*n])
	t := inPlace(c.planned(func() plan.Plan { return plan.BruckAllToAll(rank, size, n/c.elem) }), c.operands)
	t.end = func(c *collective) {
		rank, size := c.g.rank, c.g.Size()
		n := len(c.out.buf) / size
		for i := range size {
			from := (rank - i + size) % size
			copy(c.out.buf[from*n:(from+1)*n], c.operands[i*n:])
		}
	}
	return t
}

// AllToAllV is AllToAll with blocks of different lengths: block r of in, of inCounts[r] elements, goes to rank r, and
// block r of out, of outCounts[r] elements, comes from rank r. Blocks lie end to end in order of rank. Rank r's
// outCounts[s] is rank s's inCounts[r], else the call fails with a [MismatchError]. out and in must not overlap.
func AllToAllV[T Element](ctx context.Context, g *Group, out []T, outCounts []int, in []T, inCounts []int) error {
	return allToAllV(g.spare(), g, out, outCounts, in, inCounts).do(ctx)
}

// IAllToAllV starts an AllToAllV and returns at once.
func IAllToAllV[T Element](g *Group, out []T, outCounts []int, in []T, inCounts []int) *Work {
	return allToAllV(new(collective), g, out, outCounts, in, inCounts).start()
}

func allToAllV[T Element](c *collective, g *Group, out []T, outCounts []int, in []T, inCounts []int) *collective {
	c.is(g, callAllToAllV, typeOf[T](), 0)
	c.wantCounts("out", outCounts, len(out))
	c.wantCounts("in", inCounts, len(in))
	if rank := c.g.rank; c.err == nil && inCounts[rank] != outCounts[rank] {
		c.refusef("rank %d sends itself %d elements and expects %d", rank, inCounts[rank], outCounts[rank])
	}
	c.out.setBlocks(reduce.Bytes(out), outCounts...)
	c.in.setBlocks(reduce.Bytes(in), inCounts...)
	c.begin = (*collective).allToAllVTask
	return c
}

func (c *collective) allToAllVTask() task {
	c.g.anew = plan.PairwiseAllToAll(c.g.anew[:0], c.g.rank, c.in.blocks, c.out.blocks)
	return task{plan: c.g.anew, src: c.in, dst: c.out}
}
