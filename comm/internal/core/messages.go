package core

import (
	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/cpu"
	"github.com/gorun/gorun/comm/internal/pipeline"
	"github.com/gorun/gorun/comm/internal/plan"
)

// messages is the backend by messages. It takes every call.
type messages struct {
	g          *Group
	pipeline   pipeline.Pipeline
	planner    plan.Planner
	mostJoined int // see Group.mostJoined
	plans      map[call.Packed]plan.Plan
	lastPlan   plan.Plan // memory for plans that are not cached, because lengths may differ
}

// Takes implements Backend.
func (m *messages) Takes(*Collective) bool { return true }

// Interrupt implements endpoint.Backend. The communicator ends what waits.
func (m *messages) Interrupt() {}

// Abandon implements Backend. It ends what the pipeline has under way.
func (m *messages) Abandon() { _ = m.pipeline.End() }

// Compare implements Backend. The communicator compares.
func (m *messages) Compare() error { return nil }

// Moves implements endpoint.Backend. The communicator counts.
func (m *messages) Moves() uint64 { return 0 }

// Close implements Backend.
func (m *messages) Close() {}

// Run implements Backend.
func (m *messages) Run(c *Collective) error {
	if err := c.begin(); err != nil {
		return err
	}
	c.widen(false)
	if err := m.run(c); err != nil {
		return err
	}
	m.g.Comm.End(c.seq, nil)
	return nil
}

func (m *messages) run(c *Collective) error {
	switch c.kind() {
	case call.KindAllReduce, call.KindAllReduceCoalesced:
		return m.allReduce(c)
	case call.KindReduce:
		return m.reduce(c)
	case call.KindReduceScatter, call.KindReduceScatterV:
		return m.reduceScatter(c)
	case call.KindScan, call.KindExScan:
		return m.scan(c)
	case call.KindBroadcast:
		return m.broadcast(c)
	case call.KindScatter:
		return m.exchangeBlocks(c, len(c.out.Buf), m.planner.Scatter)
	case call.KindScatterV:
		return m.scatterV(c)
	case call.KindGather:
		return m.exchangeBlocks(c, len(c.in.Buf), m.planner.Gather)
	case call.KindGatherV:
		return m.gatherV(c)
	case call.KindAllGather:
		return m.allGather(c)
	case call.KindAllGatherV:
		return m.allGatherV(c)
	case call.KindAllToAll:
		return m.exchangeBlocks(c, len(c.in.Buf)/m.g.Size(), m.planner.AllToAll)
	case call.KindAllToAllV:
		return m.allToAllV(c)
	default:
		if c.steps != nil {
			return c.steps(c)
		}
		return m.barrier(c)
	}
}

// exchange carries out t, a part of c.
func (c *Collective) exchange(t *pipeline.Task) error {
	if c.kind() == call.KindMonitoredBarrier {
		defer c.monitor()()
	}
	return c.g.messages.pipeline.Run(c.asMessages(), t)
}

func (c *Collective) exchangeInPlace(p plan.Plan, buf []byte) error {
	t := pipeline.InPlace(p, buf)
	return c.exchange(&t)
}

// asMessages returns c as package pipeline sees it.
func (c *Collective) asMessages() pipeline.Call {
	return pipeline.Call{Seq: c.seq, Call: c.call.Call(), Elem: c.elem, Caller: c}
}

// mostPlans is the most plans, or routes, that a backend caches.
const mostPlans = 64

// planned returns the plan of c's call: the cached one, or what build makes. It depends only on the call.
func (m *messages) planned(c *Collective, build func() plan.Plan) plan.Plan {
	p, ok := m.plans[c.call]
	if !ok {
		p = build()
		m.plans = remember(m.plans, c.call, p)
	}
	return p
}

// remember sets m[key] to v. If there is no room for another key, it empties m first.
func remember[V any](m map[call.Packed]V, key call.Packed, v V) map[call.Packed]V {
	if _, known := m[key]; m == nil || !known && len(m) == mostPlans {
		m = make(map[call.Packed]V, mostPlans)
	}
	m[key] = v
	return m
}

func (m *messages) barrier(c *Collective) error {
	return c.exchange(&pipeline.Task{Plan: m.planned(c, func() plan.Plan { return m.planner.Barrier(m.g.rank, m.g.Size()) })})
}

func (m *messages) broadcast(c *Collective) error {
	buf := c.out.Buf
	return c.exchangeInPlace(m.planned(c, func() plan.Plan {
		return m.planner.Broadcast(m.g.rank, m.g.Size(), len(buf)/c.elem, c.elem, c.root())
	}), buf)
}

// exchangeBlocks carries out a call that moves blocks of so many bytes, by the plan that build makes.
func (m *messages) exchangeBlocks(c *Collective, bytes int, build func(rank, size, n, elem, root int) plan.Plan) error {
	return c.exchange(&pipeline.Task{
		Plan: m.planned(c, func() plan.Plan { return build(m.g.rank, m.g.Size(), bytes/c.elem, c.elem, c.root()) }),
		Src:  pipeline.Vector{Buf: c.in.Buf}, Dst: pipeline.Vector{Buf: c.out.Buf},
	})
}

func (m *messages) scatterV(c *Collective) error {
	m.lastPlan = plan.LinearScatter(m.lastPlan[:0], m.g.rank, c.root(), c.out.Blocks[0].Len(), c.in.Blocks)
	return c.exchange(&pipeline.Task{Plan: m.lastPlan, Src: c.in, Dst: c.out})
}

func (m *messages) gatherV(c *Collective) error {
	m.lastPlan = plan.LinearGather(m.lastPlan[:0], m.g.rank, c.root(), c.in.Blocks[0].Len(), c.out.Blocks)
	return c.exchange(&pipeline.Task{Plan: m.lastPlan, Src: c.in, Dst: c.out})
}

func (m *messages) allGather(c *Collective) error {
	out, in := c.out.Buf, c.in.Buf
	copyCached(out[m.g.rank*len(in):], in)
	return c.exchangeInPlace(m.planned(c, func() plan.Plan {
		return m.planner.AllGather(nil, m.g.rank, plan.EqualBlocks(m.g.Size(), len(in)/c.elem), c.elem)
	}), out)
}

func (m *messages) allGatherV(c *Collective) error {
	copyCached(c.out.Bufs[m.g.rank], c.in.Buf)
	var join bool
	m.lastPlan, join = m.planner.AllGatherV(m.lastPlan[:0], m.g.rank, c.out.Blocks, c.elem, m.mostJoined)
	if join {
		return m.allGatherJoined(c)
	}
	return c.exchange(&pipeline.Task{Plan: m.lastPlan, Src: c.out, Dst: c.out})
}

// allGatherJoined is an AllGatherV of short blocks, several of which travel as one message: a copy of them is one
// vector.
func (m *messages) allGatherJoined(c *Collective) error {
	blocks, rank := c.out.Blocks, m.g.rank
	joined := pipeline.Vector{Buf: m.g.scratch.Take(blocks[len(blocks)-1].Hi * c.elem)}
	copy(joined.At(blocks[rank], c.elem), c.in.Buf)
	if err := c.exchange(&pipeline.Task{Plan: m.lastPlan, Src: joined, Dst: joined}); err != nil {
		return err
	}
	for r, buf := range c.out.Bufs {
		if r != rank {
			copy(buf, joined.At(blocks[r], c.elem))
		}
	}
	return nil
}

func (m *messages) allToAllV(c *Collective) error {
	m.lastPlan = plan.PairwiseAllToAll(m.lastPlan[:0], m.g.rank, c.in.Blocks, c.out.Blocks)
	return c.exchange(&pipeline.Task{Plan: m.lastPlan, Src: c.in, Dst: c.out})
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
