package hier

import (
	"github.com/gorun/gorun/comm/internal/pipeline"
	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/shm"
)

// AllReduce leaves the reduction of Operands in them on every rank. In memory the ranks of a node combine Operands,
// each rank on a rail its slice. Each rail combines the slices of all nodes. Then the ranks of a node copy each other's
// slices in memory. 2S(N-1)/N bytes, the least possible, or S log2 N for short vectors.
func (c *Call) AllReduce() error {
	r := c.route(func() *Route {
		r := c.inSlices(len(c.Operands), c.Elem, c.all())
		return r.by(func(p *piece) plan.Plan {
			return r.planner().AllReduce(c.Node, c.nodes(), p.mine[0].Len(), c.Elem, c.Ordered)
		})
	})
	return c.inPieces(r,
		func(p *piece) { c.reduceSlices(r, p, c.Operands, c.Operands) },
		func(p *piece) pipeline.Task { return c.combining(p.sliceOf(c.Operands, c.LocalRank)) },
		func(p *piece) { c.allGatherSlices(r, p, c.Operands) })
}

// Reduce leaves the reduction of Operands in them on the root, and does not change those of other ranks. It is like
// AllReduce, but slices go to the ranks of the root's node, and from there to the root in memory. A node sends S bytes
// at most; the root's node receives ceil(log2 N) times as many.
func (c *Call) Reduce() error {
	r := c.route(func() *Route {
		l := c.rootedAt(c.RootRank)
		r := l.inSlices(len(c.Operands), c.Elem, c.all())
		return r.by(func(p *piece) plan.Plan {
			return r.planner().Reduce(l.Node, l.nodes(), p.mine[0].Len(), c.Elem, l.Root, c.Ordered)
		})
	})
	in := c.Operands
	work := in
	switch {
	case c.Rank == c.RootRank: // its operands may be overwritten
	case r.rails == 1 && !r.isLeader(): // it only reads
	case r.rails == 1:
		work = c.Scratch.Take(len(in))
		copy(work, in)
		in = work
	default:
		work = c.Scratch.Take(len(in))
	}
	return c.inPieces(r,
		func(p *piece) { c.reduceSlices(r, p, work, in) },
		func(p *piece) pipeline.Task { return c.combining(p.sliceOf(work, c.LocalRank)) },
		func(p *piece) {
			if r.Node == r.Root && r.rails > 1 { // otherwise the root is the rail
				c.inMemory(r, func(t *shm.Team) error {
					all, mine := t.Slices(work, p.slices[0])
					return t.GatherSlices(all, mine, r.Leader())
				})
			}
		})
}

// ReduceScatter makes Operands this rank's block of the reduction of Operands, which have a block for every rank. It
// does not change the caller's memory. In memory the ranks of a node combine the blocks for every node, each rank on a
// rail its slice. Each rail combines them, so that a node gets the slices of its own blocks, and the ranks there copy
// their blocks in memory, unless slices are blocks. S(N-1)/N bytes if nodes have equally many ranks; the least possible
// for any nodes.
func (c *Call) ReduceScatter() error {
	size := len(c.Operands) / c.Size
	r := c.route(func() *Route {
		r := c.inSlices(len(c.Operands), c.Elem, c.Blocks(size/c.Elem)...)
		return r.by(func(p *piece) plan.Plan {
			all, _ := r.planner().ReduceScatter(nil, c.Node, p.mine, c.Elem, c.Ordered, r.mostJoined())
			return all
		})
	})
	in := c.Operands
	work := c.Scratch.Take(len(in))
	if r.rails == 1 || !r.InOrder() {
		pack(work, in, c.Order(), size)
		in = work
	}
	_, most := c.Sizes()
	err := c.inPieces(r,
		func(p *piece) { c.reduceSlices(r, p, work, in) },
		func(*piece) pipeline.Task { return c.combining(work) },
		func(p *piece) {
			if r.rails < most {
				c.inMemory(r, func(t *shm.Team) error { return t.AllGatherV(t.Slices(work, p.slices[c.Node])) })
			}
		})
	c.Operands = c.blocksHere(work, size)[c.LocalRank*size:][:size]
	return err
}

// all returns the range of all Operands.
func (c *Call) all() plan.Range { return plan.Range{Hi: len(c.Operands) / c.Elem} }

// combining returns the task of combining operands in buf, without its plan.
func (c *Call) combining(buf []byte) pipeline.Task {
	t := pipeline.InPlace(nil, buf)
	t.Kernel = c.Kernel
	return t
}
