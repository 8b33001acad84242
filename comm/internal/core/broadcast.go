package core

import (
	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/pipeline"
	"github.com/gorun/gorun/comm/internal/plan"
)

// Broadcast makes c a Broadcast.
func (c *Collective) Broadcast(g *Group, buf Data, src int) *Collective {
	c.is(g, call.KindBroadcast, buf.Type, buf.Count)
	c.root(src)
	c.out.Buf = buf.Bytes
	c.body = (*Collective).broadcast
	return c
}

func (c *Collective) broadcast() error {
	buf, src := c.out.Buf, int(c.call.Root)
	if t := c.teamOfAll(); t != nil {
		return t.Broadcast(buf, src)
	}
	if h := c.inStages(false); h != nil {
		return h.Broadcast()
	}
	return c.exchangeInPlace(c.planned(func() plan.Plan {
		return c.g.Choose.Broadcast(c.g.rank, c.g.Size(), len(buf)/c.elem, c.elem, src)
	}), buf)
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
		return t.Scatter(out, in, src)
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

// scatterInTree is a Scatter through other ranks.
func (c *Collective) scatterInTree(out, in []byte, src int) error {
	rank, size, n := c.g.rank, c.g.Size(), len(out)
	if rank != src {
		in = c.g.scratch.Take(size * n)
	}
	err := c.exchangeInPlace(c.planned(func() plan.Plan { return plan.BinomialScatter(rank, size, n/c.elem, src) }), in)
	if err == nil {
		copy(out, in[rank*n:][:n])
	}
	return err
}

// ScatterV makes c a ScatterV to out. On rank src, the caller has added the inputs with AddIn.
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
