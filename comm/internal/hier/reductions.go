package hier

import (
	"github.com/gorun/gorun/comm/internal/pipeline"
	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/shm"
)

// AllReduce leaves the reduction of Operands in them on every rank. In memory the ranks of a node combine what they have, each on a
// rail its slice; rails combine the slices of all nodes; and in memory the ranks of a node take the slices of each other.
// 2S(N-1)/N bytes, the least possible, or S log2 N if they are few.
func (c *Call) AllReduce() error {
	r := c.route(func() *Route {
		r := c.inSlices(len(c.Operands), c.Elem, c.all())
		return r.by(c.Choose.AllReduce(c.Node, c.nodes(), r.mine[0].Len(), c.Elem, c.Ordered))
	})
	if err := c.combineSlices(r, c.Operands); err != nil {
		return err
	}
	if err := c.onRail(r, c.combining(r.own(c.Operands))); err != nil {
		return err
	}
	return c.shareSlices(r, c.Operands)
}

// Reduce leaves the reduction of Operands in them on the root: as AllReduce, but slices go to the rails of the root's node, and from
// there to the root in memory. S bytes at most, which the root's node gets ceil(log2 N) times.
func (c *Call) Reduce() error {
	r := c.route(func() *Route {
		l := c.ledBy(c.RootRank)
		r := l.inSlices(len(c.Operands), c.Elem, c.all())
		return r.by(l.Choose.Reduce(l.Node, l.nodes(), r.mine[0].Len(), c.Elem, l.Root, c.Ordered))
	})
	if err := c.combineSlices(r, c.Operands); err != nil {
		return err
	}
	if err := c.onRail(r, c.combining(r.own(c.Operands))); err != nil || r.Node != r.Root || r.rails == 1 { // the root is the rail
		return err
	}
	return c.inMemory(r, func(t *shm.Team) error { return t.GatherV(c.Operands, r.parts[0], r.Leader()) })
}

// ReduceScatter leaves this rank's block of the reduction of Operands, which have a block for every rank, in Operands, and nothing
// else. It does not change what Operands were. In memory the ranks of a node combine what they have for every node, a slice on each
// rail; rails bring slices to the nodes whose they are; and there ranks take their blocks in memory, unless slices are just that.
// S(N-1)/N bytes for nodes of one size, and the least possible for any.
func (c *Call) ReduceScatter() error {
	size := len(c.Operands) / c.Size
	work := c.pick(c.Operands, c.Order(), size)
	r := c.route(func() *Route {
		r := c.inSlices(len(work), c.Elem, c.Blocks(size/c.Elem)...)
		return r.by(plan.ReduceScatter(nil, c.Node, r.mine, c.Ordered))
	})
	if err := c.combineSlices(r, work); err != nil {
		return err
	}
	if err := c.onRail(r, c.combining(work)); err != nil {
		return err
	}
	if _, most := c.Sizes(); r.rails < most {
		err := c.inMemory(r, func(t *shm.Team) error { return t.AllGatherV(work, r.parts[c.Node]) })
		if err != nil {
			return err
		}
	}
	c.Operands = c.blocksHere(work, size)[c.Place*size:][:size]
	return nil
}

// all is the range of Operands.
func (c *Call) all() plan.Range { return plan.Range{Hi: len(c.Operands) / c.Elem} }

// combining is the task, but for its plan, of combining operands in buf.
func (c *Call) combining(buf []byte) pipeline.Task {
	t := pipeline.InPlace(nil, buf)
	t.Kernel = c.Kernel
	return t
}
