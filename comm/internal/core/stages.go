package core

import (
	"runtime"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/hier"
	"github.com/gorun/gorun/comm/internal/shm"
)

// stages is the backend of a group on several machines, on which some members share memory.
type stages struct {
	local
	layout *hier.Layout
	call   hier.Call
	routes map[call.Packed]*hier.Route
}

// Takes implements Backend.
func (s *stages) Takes(c *Collective) bool {
	if !InMemory(c.kind()) || !c.kind().HasCount() || c.op != nil && c.op.Ordered() && !s.layout.InOrder() {
		return false
	}
	_, most := s.layout.Sizes()
	return shm.Fits(most, c.elem)
}

// Run implements Backend.
func (s *stages) Run(c *Collective) error {
	if err := c.begin(); err != nil {
		return err
	}
	if s.team != nil {
		c.beginInMemory(s.team)
	}
	c.widen(false)
	s.call = hier.Call{
		Layout: s.layout, Rank: s.g.rank, Size: s.g.Size(), RootRank: c.root(), Out: c.out.Buf, In: c.in.Buf,
		Route: s.routes[c.call], Scratch: &s.g.scratch, Call: c.asMessages(), Pipeline: &s.g.messages.pipeline,
		Overlaps: s.g.mayOverlap(c),
	}
	err := s.run(c, &s.call)
	s.routes = remember(s.routes, c.call, s.call.Route)
	s.call = hier.Call{}
	if s.team != nil {
		s.g.Comm.Moved(c.seq, s.team.Sent, s.team.Received)
	}
	if err == nil {
		s.g.Comm.End(c.seq, nil)
	}
	return err
}

func (s *stages) run(c *Collective, h *hier.Call) error {
	if c.op != nil {
		h.Kernel, h.Fold, h.Ordered = c.kernel, c.folding(), c.op.Ordered()
	}
	switch c.kind() {
	case call.KindBarrier:
		return h.Barrier()
	case call.KindBroadcast:
		return h.Broadcast()
	case call.KindScatter:
		return h.Scatter()
	case call.KindGather:
		return h.Gather()
	case call.KindAllGather:
		return h.AllGather()
	case call.KindAllToAll:
		return h.AllToAll()
	case call.KindReduceScatter:
		h.Operands = c.operandsOf(c.in.Buf, !c.op.Scaled) // not overwritten
		err := h.ReduceScatter()
		return c.finishBlock(h.Operands, err)
	default:
		c.makeOperands()
		h.Operands = c.operands
		if c.kind() == call.KindReduce {
			return c.finish(h.Reduce())
		}
		return c.finish(h.AllReduce())
	}
}

// mayOverlap reports whether stages of c may run in two goroutines. The caller's own functions run only in the caller's.
func (g *Group) mayOverlap(c *Collective) bool {
	return g.World.MayOverlap && g.World.Poll == nil && runtime.GOMAXPROCS(0) > 1 && (c.op == nil || c.op.Own == nil)
}
