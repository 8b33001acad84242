package core

import (
	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/cpu"
	"github.com/gorun/gorun/comm/internal/pipeline"
	"github.com/gorun/gorun/comm/internal/plan"
)

// Barrier makes c a Barrier.
func (c *Collective) Barrier(g *Group) *Collective { return c.meeting(g, call.KindBarrier) }

// meeting makes c a collective that moves nothing: it makes sure that all ranks make the same call.
func (c *Collective) meeting(g *Group, kind call.Kind) *Collective {
	c.is(g, kind, 0, 0)
	c.body = (*Collective).meet
	return c
}

func (c *Collective) meet() error {
	if t := c.teamOfAll(); t != nil {
		return c.inMemory(t.Barrier())
	}
	if h := c.inStages(false); h != nil {
		return h.Barrier()
	}
	return c.exchange(&pipeline.Task{Plan: c.planned(func() plan.Plan {
		return plan.DisseminationBarrier(c.g.rank, c.g.Size())
	})})
}

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
		return c.inMemory(t.Broadcast(buf, src))
	}
	if h := c.inStages(false); h != nil {
		return h.Broadcast()
	}
	t := pipeline.InPlace(c.planned(func() plan.Plan {
		return c.g.Choose.Broadcast(c.g.rank, c.g.Size(), len(buf)/c.elem, c.elem, src)
	}), buf)
	return c.exchange(&t)
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
		return c.inMemory(t.AllGather(out, in))
	}
	if h := c.inStages(false); h != nil {
		return h.AllGather()
	}
	copyNear(out[c.g.rank*len(in):], in)
	t := pipeline.InPlace(c.planned(func() plan.Plan {
		return c.g.Choose.AllGather(c.g.rank, c.g.Size(), len(in)/c.elem, c.elem)
	}), out)
	return c.exchange(&t)
}

// AllGatherV makes c an AllGatherV of in to what AddOut has added.
func (c *Collective) AllGatherV(g *Group, in Data) *Collective {
	c.is(g, call.KindAllGatherV, in.Type, 0)
	c.wantBufs("out", &c.out, "in", in.Count, c.elem)
	c.out.SetBlocksOfBufs(c.elem)
	c.in.Buf = in.Bytes
	c.body = (*Collective).allGatherV
	return c
}

func (c *Collective) allGatherV() error {
	copyNear(c.out.Bufs[c.g.rank], c.in.Buf)
	c.g.lastPlan = c.g.Choose.AllGatherApart(c.g.lastPlan[:0], c.g.rank, c.out.Blocks, c.elem)
	return c.exchange(&pipeline.Task{Plan: c.g.lastPlan, Src: c.out, Dst: c.out})
}

// nearLimit is how many bytes fit into the caches.
const nearLimit = 4 << 20

// copyNear copies src to dst, which is sent from next, or combined with. They may be the same memory.
func copyNear(dst, src []byte) {
	switch {
	case len(src) == 0 || &src[0] == &dst[0]:
	case len(src) <= nearLimit:
		cpu.Copy(dst[:len(src)], src)
	default:
		copy(dst, src)
	}
}
