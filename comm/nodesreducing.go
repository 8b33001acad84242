package comm

import (
	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/shm"
)

// allReduceOn leaves the reduction of c's operands in them on every rank: in memory the ranks of a node combine what they have,
// each on a rail its slice; rails combine the slices of all nodes; and in memory the ranks of a node take the slices of each
// other. 2S(N-1)/N bytes, the least possible, or S log2 N if they are few.
func (c *collective) allReduceOn(n *nodes) error {
	r := c.routed(func() *route {
		r := n.railed(len(c.operands), c.elem, c.all())
		return r.by(n.choose.AllReduce(n.Node, n.size(), r.mine[0].Len(), c.elem, c.red.ordered()))
	})
	if err := c.combineSlices(r, c.operands); err != nil {
		return err
	}
	if err := c.onRail(r, c.combining(r.own(c.operands))); err != nil {
		return err
	}
	return c.shareSlices(r, c.operands)
}

// reduceOn leaves the reduction of c's operands in them on rank root: as allReduceOn, but slices go to the rails of root's node,
// and from there to root in memory. S bytes at most, which root's node gets ceil(log2 N) times.
func (c *collective) reduceOn(n *nodes) error {
	r := c.routed(func() *route {
		n := n.led(int(c.call.Root))
		r := n.railed(len(c.operands), c.elem, c.all())
		return r.by(n.choose.Reduce(n.Node, n.size(), r.mine[0].Len(), c.elem, n.Root, c.red.ordered()))
	})
	if err := c.combineSlices(r, c.operands); err != nil {
		return err
	}
	if err := c.onRail(r, c.combining(r.own(c.operands))); err != nil || r.Node != r.Root || r.rails == 1 { // root is the rail
		return err
	}
	return c.inMemory(r, func(t *shm.Team) error { return t.GatherParts(c.operands, r.parts[0], r.Leader()) })
}

// reduceScatterOn leaves in out this rank's block of the reduction of in: in memory the ranks of a node combine what they have
// for every node, a slice on each rail; rails bring slices to the nodes whose they are; and there ranks take their blocks in
// memory, unless slices are just that. S(N-1)/N bytes for nodes of one size, and the least possible for any.
func (c *collective) reduceScatterOn(n *nodes) error {
	operands := c.operandsOf(c.in.buf, !c.red.scaled) // not overwritten
	size := len(operands) / c.g.Size()
	work := c.picked(operands, n.Order(), size)
	r := c.routed(func() *route {
		r := n.railed(len(work), c.elem, n.Blocks(size/c.elem)...)
		return r.by(plan.ReduceScatter(nil, n.Node, r.mine, c.red.ordered()))
	})
	if err := c.combineSlices(r, work); err != nil {
		return err
	}
	if err := c.onRail(r, c.combining(work)); err != nil {
		return err
	}
	if _, most := n.Sizes(); r.rails < most {
		err := c.inMemory(r, func(t *shm.Team) error { return t.ShareParts(work, r.parts[n.Node]) })
		if err != nil {
			return err
		}
	}
	c.into, c.operands = c.out.buf, n.blockOf(work, size)[n.Place*size:][:size]
	if !c.wide() {
		c.operands = c.into[:copy(c.into, c.operands)]
	}
	return nil
}

// all is the range of c's operands.
func (c *collective) all() plan.Range { return plan.Range{Hi: len(c.operands) / c.elem} }

// combining is the task, but for its plan, of combining operands in buf.
func (c *collective) combining(buf []byte) task {
	t := inPlace(nil, buf)
	t.kernel = c.kernel
	return t
}
