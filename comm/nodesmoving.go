package comm

import (
	"slices"

	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/shm"
)

// broadcastOn copies out of rank root to out of every rank: in memory the ranks of root's node take it; rails bring slices to
// all nodes; and there ranks take them in memory. S bytes to each node, in ceil(log2 N) steps. If there is but one rail, which
// root itself is on, its node takes what it has last.
func (c *collective) broadcastOn(n *nodes) error {
	buf := c.out.buf
	r := c.routed(func() *route {
		n := n.led(int(c.call.Root))
		r := n.railed(len(buf), c.elem, plan.Range{Hi: len(buf) / c.elem})
		return r.by(plan.BinomialBroadcast(n.Node, n.size(), r.mine[0].Len(), n.Root))
	})
	wire := inPlace(nil, r.own(buf))
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

// allGatherOn collects in of all ranks in out: first in memory those of a node, of which every rank then has a slice on its
// rail; rails collect slices; and in memory ranks take those of each other. S(N-1)/N bytes for nodes of one size, and the least
// possible for any.
func (c *collective) allGatherOn(n *nodes) error {
	out, in := c.out.buf, c.in.buf
	room := c.roomOn(n, out)
	r := c.routed(func() *route {
		r := n.railed(len(room), c.elem, n.Blocks(len(in)/c.elem)...)
		r.parts = slices.Delete(r.parts, n.Node, n.Node+1) // which ranks here have by then
		return r.by(n.choose.AllGatherV(n.Node, r.mine, c.elem))
	})
	here := n.blockOf(room, len(in))
	if r.team == nil {
		copy(here, in)
	}
	if err := c.inMemory(r, func(t *shm.Team) error { return t.AllGather(here, in) }); err != nil {
		return err
	}
	if err := c.onRail(r, inPlace(nil, room)); err != nil {
		return err
	}
	if err := c.shareSlices(r, room); err != nil {
		return err
	}
	n.settle(out, room, len(in))
	return nil
}

// collected is the route of blocks of so many bytes from or to root, by the plan that build makes. Short ones of a node travel
// as one message, by way of its leader; others straight, but in memory where that can be.
func (c *collective) collected(n *nodes, bytes int, build func(p plan.Plan, rank, root, n int, blocks []plan.Range) plan.Plan) *route {
	return c.routed(func() *route {
		root := int(c.call.Root)
		if !n.Together(bytes) {
			n = n.spread(root)
		}
		n = n.led(root)
		blocks := n.Blocks(bytes / c.elem)
		return n.straight().by(build(nil, n.Node, n.Root, blocks[n.Node].Len(), blocks))
	})
}

// gatherOn collects in of all ranks in out of rank root: in memory those of a node at its leader, and then as messages. Root gets
// every byte from other nodes once.
func (c *collective) gatherOn(n *nodes) error {
	out, in := c.out.buf, c.in.buf
	r := c.collected(n, len(in), plan.LinearGather)
	atRoot := c.g.rank == int(c.call.Root)
	var room []byte // of root, in order of nodes
	here := in      // of a leader: the blocks of its node
	switch {
	case atRoot:
		room = c.roomOn(r.nodes, out)
		here = r.blockOf(room, len(in))
		copy(here[r.Place*len(in):], in)
	case r.team != nil && r.leads():
		here = c.g.memory(len(r.Here()) * len(in))
	}
	if err := c.inMemory(r, func(t *shm.Team) error { return t.Gather(here, in, r.Leader()) }); err != nil {
		return err
	}
	if err := c.onRail(r, task{src: vector{buf: here}, dst: vector{buf: room}}); err != nil {
		return err
	}
	if atRoot {
		r.settle(out, room, len(in))
	}
	return nil
}

// scatterOn is gatherOn the other way.
func (c *collective) scatterOn(n *nodes) error {
	out, in := c.out.buf, c.in.buf
	r := c.collected(n, len(out), plan.LinearScatter)
	atRoot := c.g.rank == int(c.call.Root)
	var room []byte // of root, in order of nodes
	here := out     // of a leader: the blocks of its node
	switch {
	case atRoot:
		room = c.arranged(r.nodes, in, len(out))
		here = r.blockOf(room, len(out))
	case r.team != nil && r.leads():
		here = c.g.memory(len(r.Here()) * len(out))
	}
	if err := c.onRail(r, task{src: vector{buf: room}, dst: vector{buf: here}}); err != nil {
		return err
	}
	if atRoot && r.team == nil {
		copy(out, here)
	}
	return c.inMemory(r, func(t *shm.Team) error { return t.Scatter(out, here, r.Leader()) })
}
