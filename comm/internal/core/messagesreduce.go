package core

import (
	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/choice"
	"github.com/gorun/gorun/comm/internal/pipeline"
	"github.com/gorun/gorun/comm/internal/plan"
)

// exchangeOperands runs p on the operands, and leaves the result.
func (c *Collective) exchangeOperands(p plan.Plan) error {
	t := pipeline.InPlace(p, c.operands)
	t.Kernel = c.kernel
	return c.finish(c.exchange(&t))
}

func (m *messages) allReduce(c *Collective) error {
	c.makeOperands()
	return c.exchangeOperands(m.planned(c, func() plan.Plan {
		return m.planner.AllReduce(m.g.rank, m.g.Size(), len(c.operands)/c.elem, c.elem, c.op.Ordered())
	}))
}

// reduce leaves the result in the buffer of one rank. On the others that does not change: they send from it, or combine
// into other memory.
func (m *messages) reduce(c *Collective) error {
	buf, result := c.out.Buf, m.g.rank == c.root()
	p := m.planned(c, func() plan.Plan {
		return m.planner.Reduce(m.g.rank, m.g.Size(), c.values(buf), c.elem, c.root(), c.op.Ordered())
	})
	if result || c.copiesInput() {
		c.setOperands(buf, result)
		return c.exchangeOperands(p)
	}
	t := pipeline.InPlace(p, buf)
	t.Kernel = c.kernel
	if p.Combines() {
		scratch := pipeline.Vector{Buf: m.g.scratch.Take(len(buf))}
		t.Input, t.Src, t.Dst = t.Dst, scratch, scratch
	}
	return c.exchange(&t)
}

// copiesInput reports whether the operands are not the elements themselves, or have to be copies of them: an operation
// of the caller's own may change them, by mistake.
func (c *Collective) copiesInput() bool { return c.isWide() || c.op.Scaled || c.op.Own != nil }

// reduceScatter leaves this rank's block of the reduction of in in out. in has a block for every rank: separate
// buffers, or equal blocks in one buffer.
func (m *messages) reduceScatter(c *Collective) error {
	for len(c.in.Blocks) < m.g.Size() {
		c.in.AddBlock(c.values(c.out.Buf))
	}
	mostJoined := choice.Any
	if len(c.in.Bufs) > 0 {
		mostJoined = m.mostJoined
	}
	var join bool
	m.lastPlan, join = m.planner.ReduceScatter(m.lastPlan[:0], m.g.rank, c.in.Blocks, c.elem, c.op.Ordered(), mostJoined)
	if join {
		return m.reduceJoined(c)
	}
	return m.reduceScattered(c)
}

// reduceJoined is reduceScatter by a plan that overwrites all blocks. It combines in scratch memory, because in must
// not change. If the operands are in one buffer, they are read there. Otherwise they are copied first: halving sends
// several blocks together.
func (m *messages) reduceJoined(c *Collective) error {
	blocks, own := c.in.Blocks, c.in.Blocks[m.g.rank]
	n := blocks[len(blocks)-1].Hi
	work := pipeline.Vector{Buf: m.g.scratch.Take(n * c.elem)}
	t := pipeline.Task{Plan: m.lastPlan, Src: work, Dst: work, Kernel: c.kernel}
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
	return c.finishBlock(work.At(own, c.elem), err)
}

// reduceScattered is reduceScatter that writes only to out.
func (m *messages) reduceScattered(c *Collective) error {
	c.makeListed()
	src := c.in
	src.Buf = c.operandsOf(src.Buf, !c.op.Scaled) // not overwritten
	own := src.Blocks[m.g.rank]
	c.setResult(c.out.Buf)
	copyCached(c.operands, src.At(own, c.elem))
	return c.finish(c.exchange(&pipeline.Task{
		Plan: m.lastPlan, Src: src, Dst: pipeline.Vector{Buf: c.operands, Base: own.Lo}, Kernel: c.kernel,
	}))
}

func (m *messages) scan(c *Collective) error {
	scan := plan.DoublingScan
	if c.kind() == call.KindExScan {
		scan = plan.DoublingExScan
	}
	c.makeOperands()
	return c.exchangeOperands(m.planned(c, func() plan.Plan { return scan(m.g.rank, m.g.Size(), c.values(c.out.Buf)) }))
}
