package hier

import (
	"github.com/gorun/gorun/comm/internal/pipeline"
	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/shm"
)

// Broadcast copies Out of the root to Out of every rank. The ranks of the root's node copy it in memory, rails carry slices to all
// nodes, and the ranks there copy each other's slices in memory. S bytes to each node. If there is only one rail, the
// root carries it, and the other ranks of its node copy Out last.
func (c *Call) Broadcast() error {
	buf := c.Out
	r := c.route(func() *Route {
		l := c.rootedAt(c.RootRank)
		r := l.inSlices(len(buf), c.Elem, plan.Range{Hi: len(buf) / c.Elem})
		return r.by(r.choices().Broadcast(l.Node, l.nodes(), r.mine[0].Len(), c.Elem, l.Root))
	})
	wire := pipeline.InPlace(nil, r.own(buf))
	if r.Node == r.Root && r.rails > 1 {
		c.inMemory(r, func(t *shm.Team) error { return t.Broadcast(buf, r.Leader()) })
		c.onRail(r, wire)
	} else {
		c.onRail(r, wire)
		c.allGatherSlices(r, buf)
	}
	return c.err
}

// Scatter sends block r of In of the root to Out of rank r. It is Gather in the other direction.
func (c *Call) Scatter() error {
	out, in := c.Out, c.In
	r := c.withRoot(len(out), plan.LinearScatter)
	atRoot := c.Rank == c.RootRank
	var ordered []byte // on the root: all blocks, in order of nodes
	here := out        // on a leader: the blocks of its node
	switch {
	case atRoot:
		ordered = in
		if !r.InOrder() {
			ordered = c.pick(in, r.Order(), len(out))
		}
		here = r.blocksHere(ordered, len(out))
	case r.Team != nil && r.isLeader():
		here = c.Scratch.Take(len(r.Here()) * len(out))
	}
	c.onRail(r, pipeline.Task{Src: pipeline.Vector{Buf: ordered}, Dst: pipeline.Vector{Buf: here}})
	if atRoot && r.Team == nil {
		copy(out, here)
	}
	c.inMemory(r, func(t *shm.Team) error { return t.Scatter(out, here, r.Leader()) })
	return c.err
}
