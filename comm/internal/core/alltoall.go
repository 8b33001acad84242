package core

import (
	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/pipeline"
	"github.com/gorun/gorun/comm/internal/plan"
)

// AllToAll makes c an AllToAll.
func (c *Collective) AllToAll(g *Group, out []byte, in Data) *Collective {
	c.is(g, call.KindAllToAll, in.Type, in.Count)
	if len(out) != len(in.Bytes) {
		c.refusef("len(out) is %d: want len(in) = %d", len(out)/c.elem, in.Count)
	}
	if size := c.g.Size(); c.err == nil && in.Count%size != 0 {
		c.refusef("len(in) is %d: want a multiple of Size = %d", in.Count, size)
	}
	c.out.Buf, c.in.Buf = out, in.Bytes
	c.body = (*Collective).allToAll
	return c
}

func (c *Collective) allToAll() error {
	block := len(c.in.Buf) / c.g.Size()
	if t := c.teamOfAll(); t != nil {
		return t.AllToAll(c.out.Buf, c.in.Buf)
	}
	if h := c.inStages(false); h != nil {
		return h.AllToAll()
	}
	if c.g.Choose.Together("all_to_all", c.g.Size(), block) {
		return c.allToAllBruck(block)
	}
	return c.exchange(&pipeline.Task{
		Plan: c.planned(func() plan.Plan {
			blocks := plan.EqualBlocks(c.g.Size(), block/c.elem)
			return plan.PairwiseAllToAll(nil, c.g.rank, blocks, blocks)
		}),
		Src: c.in, Dst: c.out,
	})
}

// allToAllBruck is an AllToAll of blocks of n bytes that travel together.
func (c *Collective) allToAllBruck(n int) error {
	in, out, rank, size := c.in.Buf, c.out.Buf, c.g.rank, c.g.Size()
	rotated := c.g.scratch.Take((size + size/2*2) * n) // block i is for rank i after this one
	copy(rotated[copy(rotated, in[rank*n:]):], in[:rank*n])
	if err := c.exchangeInPlace(c.planned(func() plan.Plan { return plan.BruckAllToAll(rank, size, n/c.elem) }), rotated); err != nil {
		return err
	}
	for i := range size {
		from := (rank - i + size) % size
		copy(out[from*n:(from+1)*n], rotated[i*n:])
	}
	return nil
}

// AllToAllV makes c an AllToAllV. The counts are the elements of each block.
func (c *Collective) AllToAllV(g *Group, out Data, outCounts []int, in Data, inCounts []int) *Collective {
	c.is(g, call.KindAllToAllV, in.Type, 0)
	c.wantCounts("out", outCounts, out.Count)
	c.wantCounts("in", inCounts, in.Count)
	if rank := c.g.rank; c.err == nil && inCounts[rank] != outCounts[rank] {
		c.refusef("rank %d sends itself %d elements and expects %d", rank, inCounts[rank], outCounts[rank])
	}
	c.out.SetBlocks(out.Bytes, outCounts...)
	c.in.SetBlocks(in.Bytes, inCounts...)
	c.body = (*Collective).allToAllV
	return c
}

func (c *Collective) allToAllV() error {
	c.g.lastPlan = plan.PairwiseAllToAll(c.g.lastPlan[:0], c.g.rank, c.in.Blocks, c.out.Blocks)
	return c.exchange(&pipeline.Task{Plan: c.g.lastPlan, Src: c.in, Dst: c.out})
}
