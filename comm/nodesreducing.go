package comm

import (
	"slices"

	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/shm"
)

// allReduceOn is the task of leaving the reduction of buf in it on every rank: in memory the ranks of a node combine what
// they have, each on a rail its slice; rails combine the slices of all nodes; and in memory the ranks of a node take the
// slices of each other. 2S(N-1)/N bytes, the least possible, or S log2 N if they are few.
func (c *collective) allReduceOn(n *nodes, buf []byte) task {
	work := c.operandsOf(buf, true)
	c.into, c.operands = buf, work
	v := n.railed(work, c.elem, plan.Range{Hi: len(work) / c.elem})
	own := v.mine[0]
	return task{
		stages: slices.Concat(
			n.inMemory(func(t *shm.Team) error { return v.combine(t, c.folding()) }),
			n.onRail(v.rails, func() task {
				return c.combining(c.g.choose.AllReduce(n.Node, n.size(), own.Len(), c.elem, c.red.ordered()), v.parts[0][n.Place])
			}),
			n.inMemory(v.share),
		),
		end: (*collective).finish,
	}
}

// reduceOn is the task of leaving the reduction of buf in it on rank root: as allReduceOn, but slices go to the rails of
// root's node, and from there to root in memory. S bytes at most, which root's node gets ceil(log2 N) times.
func (c *collective) reduceOn(n *nodes, buf []byte, root int) task {
	n = n.led(root)
	work := c.operandsOf(buf, c.g.rank == root)
	c.into, c.operands = buf, work
	v := n.railed(work, c.elem, plan.Range{Hi: len(work) / c.elem})
	own := v.mine[0]
	t := task{stages: slices.Concat(
		n.inMemory(func(t *shm.Team) error { return v.combine(t, c.folding()) }),
		n.onRail(v.rails, func() task {
			return c.combining(c.g.choose.Reduce(n.Node, n.size(), own.Len(), c.elem, n.Of(root), c.red.ordered()), v.parts[0][n.Place])
		}),
	)}
	if n.Node == n.Of(root) && v.rails > 1 { // else root is the rail
		t.stages = append(t.stages, n.inMemory(func(t *shm.Team) error { return t.GatherParts(v.parts[0], n.Leader()) })...)
	}
	if c.g.rank == root {
		t.end = (*collective).finish
	}
	return t
}

// reduceScatterOn is the task of leaving in out this rank's block of the reduction of in: in memory the ranks of a node combine
// what they have for every node, a slice on each rail; rails bring slices to the nodes whose they are; and there ranks take
// their blocks in memory, unless slices are just that. S(N-1)/N bytes for nodes of one size, and the least possible for any.
func (c *collective) reduceScatterOn(n *nodes, out, in []byte) task {
	operands := c.operandsOf(in, !c.red.scaled) // not overwritten
	size := len(operands) / c.g.Size()
	work := pick(operands, n.Order(), size)
	blocks := n.Blocks(size / c.elem)
	v := n.railed(work, c.elem, blocks...)
	t := task{stages: slices.Concat(
		n.inMemory(func(t *shm.Team) error { return v.combine(t, c.folding()) }),
		n.onRail(v.rails, func() task { return c.combining(plan.ReduceScatter(n.Node, v.mine, c.red.ordered()), work) }),
	)}
	if _, most := n.Sizes(); v.rails < most {
		t.stages = append(t.stages, n.inMemory(func(t *shm.Team) error { return t.ShareParts(v.parts[n.Node]) })...)
	}
	t.end = func(c *collective) {
		c.into, c.operands = out, n.blockOf(work, size)[n.Place*size:][:size]
		if !c.wide() {
			c.operands = out[:copy(out, c.operands)]
		}
		c.finish()
	}
	return t
}

// combining is the task of p, which combines operands of buf.
func (c *collective) combining(p plan.Plan, buf []byte) task {
	t := inPlace(p, buf)
	t.kernel = c.kernel
	return t
}
