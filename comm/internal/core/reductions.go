package core

import (
	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/choice"
	"github.com/gorun/gorun/comm/internal/pipeline"
	"github.com/gorun/gorun/comm/internal/plan"
)

// AllReduce makes c an AllReduce.
func (c *Collective) AllReduce(g *Group, buf Data, op call.Reduction) *Collective {
	c.reduces(g, call.KindAllReduce, buf.Type, op, buf.Count)
	c.out.Buf = buf.Bytes
	c.body = (*Collective).allReduce
	return c
}

func (c *Collective) allReduce() error { return c.reduceToAll(c.out.Buf) }

// reduceToAll leaves the reduction of buf in it on every rank.
func (c *Collective) reduceToAll(buf []byte) (err error) {
	c.setOperands(buf, true)
	if t := c.teamOfAll(); t != nil {
		err = t.AllReduce(c.operands, c.folding())
	} else if h := c.reducesInStages(); h != nil {
		h.Operands = c.operands
		err = h.AllReduce()
	} else {
		err = c.exchangeOperands(c.planned(func() plan.Plan {
			return c.g.Choose.AllReduce(c.g.rank, c.g.Size(), c.values(buf), c.elem, c.op.Ordered())
		}))
	}
	c.finish(err == nil)
	return err
}

// Reduce makes c a Reduce.
func (c *Collective) Reduce(g *Group, buf Data, op call.Reduction, dst int) *Collective {
	c.reduces(g, call.KindReduce, buf.Type, op, buf.Count)
	c.root(dst)
	c.out.Buf = buf.Bytes
	c.body = (*Collective).reduce
	return c
}

func (c *Collective) reduce() (err error) {
	buf, dst := c.out.Buf, int(c.call.Root)
	result := c.g.rank == dst
	if t := c.teamOfAll(); t != nil {
		c.setOperands(buf, result || !c.op.Scaled) // a team does not change buf of other ranks
		err = t.Reduce(c.operands, c.folding(), dst)
	} else if h := c.reducesInStages(); h != nil {
		c.setOperands(buf, result || !c.op.Scaled) // stages do not change buf of other ranks either
		h.Operands = c.operands
		err = h.Reduce()
	} else {
		err = c.exchangeToRoot(c.planned(func() plan.Plan {
			return c.g.Choose.Reduce(c.g.rank, c.g.Size(), c.values(buf), c.elem, dst, c.op.Ordered())
		}), buf, result)
	}
	c.finish(result && err == nil)
	return err
}

// exchangeToRoot runs p, which leaves the result in buf of one rank. result says whether that is this rank. On the
// others buf does not change: they send from it, or combine into other memory.
func (c *Collective) exchangeToRoot(p plan.Plan, buf []byte, result bool) error {
	if result || c.copiesInput() {
		c.setOperands(buf, result)
		return c.exchangeOperands(p)
	}
	t := pipeline.InPlace(p, buf)
	t.Kernel = c.kernel
	if p.Combines() {
		scratch := pipeline.Vector{Buf: c.g.scratch.Take(len(buf))}
		t.Input, t.Src, t.Dst = t.Dst, scratch, scratch
	}
	return c.exchange(&t)
}

// copiesInput reports whether the operands are not the elements themselves, or have to be copies of them: an operation
// of the caller's own may change them, by mistake.
func (c *Collective) copiesInput() bool { return c.isWide() || c.op.Scaled || c.op.Own != nil }

// ReduceScatter makes c a ReduceScatter.
func (c *Collective) ReduceScatter(g *Group, out Data, in []byte, op call.Reduction) *Collective {
	c.reduces(g, call.KindReduceScatter, out.Type, op, out.Count)
	c.wantBlocks("in", len(in)/out.Type.Size(), "out", out.Count)
	c.out.Buf, c.in.Buf = out.Bytes, in
	c.body = (*Collective).reduceScatter
	return c
}

func (c *Collective) reduceScatter() (err error) {
	if t := c.teamOfAll(); t != nil {
		c.setResult(c.out.Buf)
		err = t.ReduceScatter(c.operands, c.operandsOf(c.in.Buf, !c.op.Scaled), c.folding())
	} else if h := c.reducesInStages(); h != nil {
		h.Operands = c.operandsOf(c.in.Buf, !c.op.Scaled) // not overwritten
		err = h.ReduceScatter()
		c.into, c.operands = c.out.Buf, h.Operands
		if err == nil && !c.isWide() {
			c.operands = c.into[:copy(c.into, c.operands)]
		}
	} else {
		return c.reduceScatterByMessages()
	}
	c.finish(err == nil)
	return err
}

// ReduceScatterV makes c a ReduceScatterV to out. The caller has added the inputs with AddIn.
func (c *Collective) ReduceScatterV(g *Group, out Data, op call.Reduction) *Collective {
	c.reduces(g, call.KindReduceScatterV, out.Type, op, out.Count)
	c.wantBufs("in", &c.in, "out", out.Count, out.Type.Size())
	c.wantValues("in", &c.in, out.Type.Size())
	c.in.SetBlocksOfBufs(c.elem)
	c.agreeOnLengths(&c.in, op.Width)
	c.out.Buf = out.Bytes
	c.body = (*Collective).reduceScatterByMessages
	return c
}

// reduceScatterByMessages leaves this rank's block of the reduction of in in out. in has a block for every rank:
// separate buffers, or equal blocks in one buffer.
func (c *Collective) reduceScatterByMessages() error {
	for len(c.in.Blocks) < c.g.Size() {
		c.in.AddBlock(c.values(c.out.Buf))
	}
	mostJoined := choice.Any
	if len(c.in.Bufs) > 0 {
		mostJoined = c.g.mostJoined
	}
	var join bool
	c.g.lastPlan, join = c.g.Choose.ReduceScatter(c.g.lastPlan[:0], c.g.rank, c.in.Blocks, c.elem, c.op.Ordered(), mostJoined)
	if join {
		return c.exchangeJoined()
	}
	return c.exchangeScattered()
}

// exchangeJoined is reduceScatterByMessages by a plan that overwrites all blocks. It combines in scratch memory,
// because in must not change. If the operands are in one buffer, they are read there. Otherwise they are copied first:
// halving sends several blocks together.
func (c *Collective) exchangeJoined() error {
	blocks, own := c.in.Blocks, c.in.Blocks[c.g.rank]
	n := blocks[len(blocks)-1].Hi
	work := pipeline.Vector{Buf: c.g.scratch.Take(n * c.elem)}
	t := pipeline.Task{Plan: c.g.lastPlan, Src: work, Dst: work, Kernel: c.kernel}
	switch {
	case len(c.in.Bufs) > 0:
		for i, buf := range c.in.Bufs {
			c.copyOperands(work.At(blocks[i], c.elem), buf)
		}
	case c.copiesInput():
		c.copyOperands(work.Buf, c.in.Buf)
	default:
		t.Input = pipeline.Vector{Buf: c.in.Buf}
	}
	err := c.exchange(&t)
	c.into, c.operands = c.out.Buf, work.At(own, c.elem)
	if err == nil && !c.isWide() {
		c.operands = c.into[:copy(c.into, c.operands)]
	}
	c.finish(err == nil)
	return err
}

// exchangeScattered is reduceScatterByMessages that writes only to out.
func (c *Collective) exchangeScattered() error {
	src := c.in
	src.Buf = c.operandsOf(src.Buf, !c.op.Scaled) // not overwritten
	for i, buf := range src.Bufs {
		src.Bufs[i] = c.operandsOf(buf, !c.op.Scaled)
	}
	own := src.Blocks[c.g.rank]
	c.setResult(c.out.Buf)
	copyCached(c.operands, src.At(own, c.elem))
	err := c.exchange(&pipeline.Task{
		Plan: c.g.lastPlan, Src: src, Dst: pipeline.Vector{Buf: c.operands, Base: own.Lo}, Kernel: c.kernel,
	})
	c.finish(err == nil)
	return err
}

// setResult makes out the result, with memory for its operands.
func (c *Collective) setResult(out []byte) {
	c.into, c.operands = out, out
	if c.isWide() {
		c.operands = c.operandMemory(out)
	}
}

// Scan makes c a Scan or an ExScan, as kind says.
func (c *Collective) Scan(g *Group, kind call.Kind, buf Data, op call.Reduction) *Collective {
	c.reduces(g, kind, buf.Type, op, buf.Count)
	c.out.Buf = buf.Bytes
	c.body = (*Collective).scan
	return c
}

func (c *Collective) scan() error {
	scan, result := plan.DoublingScan, true
	if c.kind() == call.KindExScan {
		scan, result = plan.DoublingExScan, c.g.rank > 0
	}
	c.setOperands(c.out.Buf, result)
	err := c.exchangeOperands(c.planned(func() plan.Plan { return scan(c.g.rank, c.g.Size(), c.values(c.out.Buf)) }))
	c.finish(result && err == nil)
	return err
}

// AllReduceCoalesced makes c an AllReduce of all buffers that AddOut has added. all has their type and their total
// length.
func (c *Collective) AllReduceCoalesced(g *Group, all Data, op call.Reduction) *Collective {
	c.out.SetBlocksOfBufs(all.Type.Size())
	c.reduces(g, call.KindAllReduceCoalesced, all.Type, op, all.Count)
	if len(c.out.Bufs) == 0 {
		c.refusef("no buffers given: want at least one")
	}
	c.wantValues("bufs", &c.out, all.Type.Size())
	c.call.Root = int32(len(c.out.Bufs))
	c.call.Detail ^= lengths(&c.out)
	c.body = (*Collective).allReduceCoalesced
	return c
}

func (c *Collective) allReduceCoalesced() error {
	if len(c.out.Bufs) == 1 {
		return c.reduceToAll(c.out.Bufs[0])
	}
	packed := c.g.scratch.Take(c.out.Blocks[len(c.out.Blocks)-1].Hi * c.elemType.Size())
	rest := packed
	for _, buf := range c.out.Bufs {
		rest = rest[copy(rest, buf):]
	}
	if err := c.reduceToAll(packed); err != nil {
		return err
	}
	rest = packed
	for _, buf := range c.out.Bufs {
		rest = rest[copy(buf, rest):]
	}
	return nil
}
