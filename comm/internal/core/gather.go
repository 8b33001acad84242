package core

import (
	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/cpu"
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
		return t.Gather(out, in, dst)
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

// gatherInTree is a Gather through other ranks.
func (c *Collective) gatherInTree(out, in []byte, dst int) error {
	rank, size := c.g.rank, c.g.Size()
	if rank != dst {
		out = c.g.scratch.Take(size * len(in))
	}
	copy(out[rank*len(in):], in)
	return c.exchangeInPlace(c.planned(func() plan.Plan { return plan.BinomialGather(rank, size, len(in)/c.elem, dst) }), out)
}

// GatherV makes c a GatherV of in. On rank dst, the caller has added the outputs with AddOut.
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

// AllGather makes c an AllGather.
func (c *Collective) AllGather(g *Group, out []byte, in Data) *Collective {
	c.is(g, call.KindAllGather, in.Type, in.Count)
	c.wantBlocks("out", len(out)/c.elem, "in", in.Count)
	c.out.Buf, c.in.Buf = out, in.Bytes
	c.body = (*Collective).allGather
	return c
}

func (c *Collective) allGather() error {
	out, in := c.out.Buf, c.in.Buf
	if t := c.teamOfAll(); t != nil {
		return t.AllGather(out, in)
	}
	if h := c.inStages(false); h != nil {
		return h.AllGather()
	}
	copyCached(out[c.g.rank*len(in):], in)
	return c.exchangeInPlace(c.planned(func() plan.Plan {
		return c.g.Choose.AllGather(nil, c.g.rank, plan.EqualBlocks(c.g.Size(), len(in)/c.elem), c.elem)
	}), out)
}

// AllGatherV makes c an AllGatherV of in. The caller has added the outputs with AddOut.
func (c *Collective) AllGatherV(g *Group, in Data) *Collective {
	c.is(g, call.KindAllGatherV, in.Type, 0)
	c.wantBufs("out", &c.out, "in", in.Count, c.elem)
	c.out.SetBlocksOfBufs(c.elem)
	c.agreeOnLengths(&c.out, 1)
	c.in.Buf = in.Bytes
	c.body = (*Collective).allGatherV
	return c
}

func (c *Collective) allGatherV() error {
	copyCached(c.out.Bufs[c.g.rank], c.in.Buf)
	var join bool
	c.g.lastPlan, join = c.g.Choose.AllGatherV(c.g.lastPlan[:0], c.g.rank, c.out.Blocks, c.elem, c.g.mostJoined)
	if join {
		return c.allGatherJoined()
	}
	return c.exchange(&pipeline.Task{Plan: c.g.lastPlan, Src: c.out, Dst: c.out})
}

// allGatherJoined is an AllGatherV of short blocks, several of which travel as one message: a copy of them is one
// vector.
func (c *Collective) allGatherJoined() error {
	blocks, rank := c.out.Blocks, c.g.rank
	joined := pipeline.Vector{Buf: c.g.scratch.Take(blocks[len(blocks)-1].Hi * c.elem)}
	copy(joined.At(blocks[rank], c.elem), c.in.Buf)
	if err := c.exchange(&pipeline.Task{Plan: c.g.lastPlan, Src: joined, Dst: joined}); err != nil {
		return err
	}
	for r, buf := range c.out.Bufs {
		if r != rank {
			copy(buf, joined.At(blocks[r], c.elem))
		}
	}
	return nil
}

// cacheSize is the bytes that fit into the caches.
const cacheSize = 4 << 20

// copyCached copies src to dst, from which a send or a reduction will read next. They may be the same memory.
func copyCached(dst, src []byte) {
	switch {
	case len(src) == 0 || &src[0] == &dst[0]:
	case len(src) <= cacheSize:
		cpu.Copy(dst[:len(src)], src)
	default:
		copy(dst, src)
	}
}
