package hier

import (
	"slices"

	"github.com/gorun/gorun/comm/internal/pipeline"
	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/shm"
)

// Broadcast copies Out of the root to Out of every rank. In memory the ranks of the root's node take it; rails bring slices to all
// nodes; and there ranks take them in memory. S bytes to each node, in ceil(log2 N) steps. If there is one rail only, which the root
// itself is on, its node takes Out last.
func (c *Call) Broadcast() error {
	buf := c.Out
	r := c.route(func() *Route {
		l := c.ledBy(c.RootRank)
		r := l.inSlices(len(buf), c.Elem, plan.Range{Hi: len(buf) / c.Elem})
		return r.by(plan.BinomialBroadcast(l.Node, l.nodes(), r.mine[0].Len(), l.Root))
	})
	wire := pipeline.InPlace(nil, r.own(buf))
	if r.Node == r.Root && r.rails > 1 {
		if err := c.inMemory(r, func(t *shm.Team) error { return t.Broadcast(buf, r.Leader()) }); err != nil {
			return err
		}
		return c.onRail(r, wire)
	}
	if err := c.onRail(r, wire); err != nil {
		return err
	}
	return c.shareSlices(r, buf)
}

// AllGather collects In of all ranks in Out: first in memory those of a node, of which every rank then has a slice on its rail;
// rails collect slices; and in memory ranks take those of each other. S(N-1)/N bytes for nodes of one size, and the least possible
// for any.
func (c *Call) AllGather() error {
	out, in := c.Out, c.In
	room := c.roomFor(c.Layout, out)
	r := c.route(func() *Route {
		r := c.inSlices(len(room), c.Elem, c.Blocks(len(in)/c.Elem)...)
		r.parts = slices.Delete(r.parts, c.Node, c.Node+1) // which ranks here have by then
		return r.by(c.Choose.AllGatherV(c.Node, r.mine, c.Elem))
	})
	here := c.blocksHere(room, len(in))
	if r.Team == nil {
		copy(here, in)
	}
	if err := c.inMemory(r, func(t *shm.Team) error { return t.AllGather(here, in) }); err != nil {
		return err
	}
	if err := c.onRail(r, pipeline.InPlace(nil, room)); err != nil {
		return err
	}
	if err := c.shareSlices(r, room); err != nil {
		return err
	}
	c.inRankOrder(out, room, len(in))
	return nil
}

// collected returns the route of blocks of so many bytes from or to the root. build makes its plan. Short blocks of a node travel as one
// message, which the node's leader collects or deals out. Longer ones travel directly between their rank and the root: in memory on the
// root's node, else as messages.
func (c *Call) collected(bytes int, build func(p plan.Plan, rank, root, n int, blocks []plan.Range) plan.Plan) *Route {
	return c.route(func() *Route {
		l := c.Layout
		if !l.Together(bytes) {
			l = l.spread(c.RootRank)
		}
		l = l.ledBy(c.RootRank)
		blocks := l.Blocks(bytes / c.Elem)
		return l.ofLeaders().by(build(nil, l.Node, l.Root, blocks[l.Node].Len(), blocks))
	})
}

// Gather collects In of all ranks in Out of the root: in memory those of a node at its leader, and then as messages. The root gets
// every byte from other nodes once.
func (c *Call) Gather() error {
	out, in := c.Out, c.In
	r := c.collected(len(in), plan.LinearGather)
	atRoot := c.Rank == c.RootRank
	var room []byte // of the root, in order of nodes
	here := in      // of a leader: the blocks of its node
	switch {
	case atRoot:
		room = c.roomFor(r.Layout, out)
		here = r.blocksHere(room, len(in))
		copy(here[r.Place*len(in):], in)
	case r.Team != nil && r.leads():
		here = c.Stages.Memory(len(r.Here()) * len(in))
	}
	if err := c.inMemory(r, func(t *shm.Team) error { return t.Gather(here, in, r.Leader()) }); err != nil {
		return err
	}
	if err := c.onRail(r, pipeline.Task{Src: pipeline.Vector{Buf: here}, Dst: pipeline.Vector{Buf: room}}); err != nil {
		return err
	}
	if atRoot {
		r.inRankOrder(out, room, len(in))
	}
	return nil
}

// Scatter deals In of the root out to Out of all ranks: it is Gather the other way.
func (c *Call) Scatter() error {
	out, in := c.Out, c.In
	r := c.collected(len(out), plan.LinearScatter)
	atRoot := c.Rank == c.RootRank
	var room []byte // of the root, in order of nodes
	here := out     // of a leader: the blocks of its node
	switch {
	case atRoot:
		room = in
		if !r.InOrder() {
			room = c.pick(in, r.Order(), len(out))
		}
		here = r.blocksHere(room, len(out))
	case r.Team != nil && r.leads():
		here = c.Stages.Memory(len(r.Here()) * len(out))
	}
	if err := c.onRail(r, pipeline.Task{Src: pipeline.Vector{Buf: room}, Dst: pipeline.Vector{Buf: here}}); err != nil {
		return err
	}
	if atRoot && r.Team == nil {
		copy(out, here)
	}
	return c.inMemory(r, func(t *shm.Team) error { return t.Scatter(out, here, r.Leader()) })
}
