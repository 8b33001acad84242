package core

import (
	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/pipeline"
	"github.com/gorun/gorun/comm/internal/plan"
)

// Gather makes c a Gather.
func (c *Collective) Gather(g *Group, out []byte, in Data, dst int) *Collective {
	c.is(g, call.KindGather, in.Type, in.Count)
	c.root(dst)
	if c.g.rank == dst {
		c.wantBlocks("out", len(out)/c.elem, "in", in.Count)
	}
	c.out.Buf, c.in.Buf = out, in.Bytes
	c.body = (*Collective).gather
	return c
}

func (c *Collective) gather() error {
	out, in, dst := c.out.Buf, c.in.Buf, int(c.call.Root)
	if t := c.teamOfAll(); t != nil {
		return c.inMemory(t.Gather(out, in, dst))
	}
	if h := c.inStages(false); h != nil {
		return h.Gather()
	}
	if c.g.Choose.Together("gather", c.g.Size(), len(in)) {
		return c.gatherInTree(out, in, dst)
	}
	return c.exchange(&pipeline.Task{
		Plan: c.planned(func() plan.Plan {
			n := len(in) / c.elem
			return plan.LinearGather(nil, c.g.rank, dst, n, plan.EqualBlocks(c.g.Size(), n))
		}),
		Src: pipeline.Vector{Buf: in}, Dst: pipeline.Vector{Buf: out},
	})
}

// gatherInTree is a Gather by way of other ranks.
func (c *Collective) gatherInTree(out, in []byte, dst int) error {
	rank, size := c.g.rank, c.g.Size()
	if rank != dst {
		out = c.g.memory(size * len(in))
	}
	copy(out[rank*len(in):], in)
	t := pipeline.InPlace(c.planned(func() plan.Plan { return plan.BinomialGather(rank, size, len(in)/c.elem, dst) }), out)
	return c.exchange(&t)
}

// GatherV makes c a GatherV of in to what AddOut has added on rank dst.
func (c *Collective) GatherV(g *Group, in Data, dst int) *Collective {
	c.is(g, call.KindGatherV, in.Type, 0)
	c.root(dst)
	if c.g.rank == dst {
		c.wantBufs("out", &c.out, "in", in.Count, c.elem)
		c.out.SetBlocksOfBufs(c.elem)
	} else {
		c.out = c.out.Emptied()
	}
	c.in.SetBlocks(in.Bytes, in.Count)
	c.body = (*Collective).gatherV
	return c
}

func (c *Collective) gatherV() error {
	c.g.lastPlan = plan.LinearGather(c.g.lastPlan[:0], c.g.rank, int(c.call.Root), c.in.Blocks[0].Len(), c.out.Blocks)
	return c.exchange(&pipeline.Task{Plan: c.g.lastPlan, Src: c.in, Dst: c.out})
}

// Scatter makes c a Scatter.
func (c *Collective) Scatter(g *Group, out Data, in []byte, src int) *Collective {
	c.is(g, call.KindScatter, out.Type, out.Count)
	c.root(src)
	if c.g.rank == src {
		c.wantBlocks("in", len(in)/c.elem, "out", out.Count)
	}
	c.out.Buf, c.in.Buf = out.Bytes, in
	c.body = (*Collective).scatter
	return c
}

func (c *Collective) scatter() error {
	out, in, src := c.out.Buf, c.in.Buf, int(c.call.Root)
	if t := c.teamOfAll(); t != nil {
		return c.inMemory(t.Scatter(out, in, src))
	}
	if h := c.inStages(false); h != nil {
		return h.Scatter()
	}
	if c.g.Choose.Together("scatter", c.g.Size(), len(out)) {
		return c.scatterInTree(out, in, src)
	}
	return c.exchange(&pipeline.Task{
		Plan: c.planned(func() plan.Plan {
			n := len(out) / c.elem
			return plan.LinearScatter(nil, c.g.rank, src, n, plan.EqualBlocks(c.g.Size(), n))
		}),
		Src: pipeline.Vector{Buf: in}, Dst: pipeline.Vector{Buf: out},
	})
}

// scatterInTree is a Scatter by way of other ranks.
func (c *Collective) scatterInTree(out, in []byte, src int) error {
	rank, size, n := c.g.rank, c.g.Size(), len(out)
	if rank != src {
		in = c.g.memory(size * n)
	}
	t := pipeline.InPlace(c.planned(func() plan.Plan { return plan.BinomialScatter(rank, size, n/c.elem, src) }), in)
	err := c.exchange(&t)
	if err == nil {
		copy(out, in[rank*n:][:n])
	}
	return err
}

// ScatterV makes c a ScatterV to out of what AddIn has added on rank src.
func (c *Collective) ScatterV(g *Group, out Data, src int) *Collective {
	c.is(g, call.KindScatterV, out.Type, 0)
	c.root(src)
	if c.g.rank == src {
		c.wantBufs("in", &c.in, "out", out.Count, c.elem)
		c.in.SetBlocksOfBufs(c.elem)
	} else {
		c.in = c.in.Emptied()
	}
	c.out.SetBlocks(out.Bytes, out.Count)
	c.body = (*Collective).scatterV
	return c
}

func (c *Collective) scatterV() error {
	c.g.lastPlan = plan.LinearScatter(c.g.lastPlan[:0], c.g.rank, int(c.call.Root), c.out.Blocks[0].Len(), c.in.Blocks)
	return c.exchange(&pipeline.Task{Plan: c.g.lastPlan, Src: c.in, Dst: c.out})
}
