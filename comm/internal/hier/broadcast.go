package hier

import (
	"github.com/gorun/gorun/comm/internal/pipeline"
	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/shm"
)

// Broadcast copies Out of the root to Out of every rank. The ranks of the root's node copy it in memory, rails carry
// slices to all nodes, and the ranks there copy each other's slices in memory. S bytes to each node. If there is only
// one rail, the root carries it, and the other ranks of its node copy Out last.
func (c *Call) Broadcast() error {
	buf := c.Out
	r := c.route(func() *Route {
		l := c.rootedAt(c.RootRank)
		r := l.inSlices(len(buf), c.Elem, plan.Range{Hi: len(buf) / c.Elem})
		return r.by(func(p *piece) plan.Plan {
			return r.planner().Broadcast(l.Node, l.nodes(), p.mine[0].Len(), c.Elem, l.Root)
		})
	})
	rootFirst := r.Node == r.Root && r.rails > 1
	return c.inPieces(r,
		func(p *piece) {
			if rootFirst {
				c.broadcastSlices(r, p, buf)
			}
		},
		func(p *piece) pipeline.Task { return pipeline.InPlace(nil, p.sliceOf(buf, c.LocalRank)) },
		func(p *piece) {
			if !rootFirst {
				c.allGatherSlices(r, p, buf)
			}
		})
}

// broadcastSlices is the stage in which the ranks of the root's node copy a piece of buf from the root.
func (c *Call) broadcastSlices(r *Route, p *piece, buf []byte) {
	if len(r.pieces) == 1 {
		c.inMemory(r, func(t *shm.Team) error { return t.Broadcast(buf, r.Leader()) })
		return
	}
	for _, s := range p.slices[0] {
		if s.Len() > 0 {
			c.inMemory(r, func(t *shm.Team) error { return t.Broadcast(buf[s.Lo:s.Hi], r.Leader()) })
		}
	}
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
