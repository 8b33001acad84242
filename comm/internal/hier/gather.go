package hier

import (
	"slices"

	"github.com/gorun/gorun/comm/internal/pipeline"
	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/shm"
)

// AllGather collects In of all ranks in Out. First the ranks of a node collect their blocks in memory. Then each rail
// collects its slices of the nodes' blocks. Then the ranks of a node copy each other's slices in memory. S(N-1)/N bytes
// if nodes have equally many ranks; the least possible for any nodes.
func (c *Call) AllGather() error {
	out, in := c.Out, c.In
	ordered := c.inNodeOrder(c.Layout, out)
	r := c.route(func() *Route {
		r := c.inSlices(len(ordered), c.Elem, c.Blocks(len(in)/c.Elem)...)
		for i := range r.pieces {
			p := &r.pieces[i]
			p.slices = slices.Delete(p.slices, c.Node, c.Node+1) // the ranks of this node have its blocks by then
		}
		return r.by(func(p *piece) plan.Plan {
			all, _ := r.planner().AllGatherV(nil, c.Node, p.mine, c.Elem, r.mostJoined())
			return all
		})
	})
	here := c.blocksHere(ordered, len(in))
	if r.Team == nil {
		copy(here, in)
	}
	c.inMemory(r, func(t *shm.Team) error { return t.AllGather(here, in) })
	err := c.inPieces(r,
		func(*piece) {},
		func(*piece) pipeline.Task { return pipeline.InPlace(nil, ordered) },
		func(p *piece) { c.allGatherSlices(r, p, ordered) })
	c.inRankOrder(out, ordered, len(in))
	return err
}

// Gather collects In of all ranks in Out of the root: each leader collects the blocks of its node in memory, and sends
// them to the root as a message. The root gets every byte from other nodes once.
func (c *Call) Gather() error {
	out, in := c.Out, c.In
	r := c.withRoot(len(in), plan.LinearGather)
	atRoot := c.Rank == c.RootRank
	var ordered []byte // on the root: all blocks, in order of nodes
	here := in         // on a leader: the blocks of its node
	switch {
	case atRoot:
		ordered = c.inNodeOrder(r.Layout, out)
		here = r.blocksHere(ordered, len(in))
		copy(here[r.LocalRank*len(in):], in)
	case r.Team != nil && r.isLeader():
		here = c.Scratch.Take(len(r.Here()) * len(in))
	}
	c.inMemory(r, func(t *shm.Team) error { return t.Gather(here, in, r.Leader()) })
	c.onRail(r, pipeline.Task{Src: pipeline.Vector{Buf: here}, Dst: pipeline.Vector{Buf: ordered}})
	if atRoot {
		r.inRankOrder(out, ordered, len(in))
	}
	return c.err
}

// withRoot returns the route of blocks of so many bytes from or to the root. build makes its plan. Short blocks of a
// node travel as one message, which the node's leader gathers or scatters. Longer ones travel directly between their
// rank and the root: in memory on the root's node, and otherwise as messages.
func (c *Call) withRoot(bytes int, build func(p plan.Plan, rank, root, n int, blocks []plan.Range) plan.Plan) *Route {
	return c.route(func() *Route {
		l := c.Layout
		if !l.Planner.Together(l.Nodes, bytes) {
			l = l.spread(c.RootRank)
		}
		l = l.rootedAt(c.RootRank)
		blocks := l.Blocks(bytes / c.Elem)
		return l.ofLeaders().byOne(build(nil, l.Node, l.Root, blocks[l.Node].Len(), blocks))
	})
}
