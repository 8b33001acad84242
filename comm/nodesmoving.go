package comm

import (
	"slices"

	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/shm"
)

// broadcastOn is the task of copying buf of rank root to buf of every rank: in memory the ranks of root's node take it; rails
// bring slices to all nodes; and there ranks take them in memory. S bytes to each node, in ceil(log2 N) steps. If there is but
// one rail, which root itself is on, its node takes what it has last.
func (c *collective) broadcastOn(n *nodes, buf []byte, root int) task {
	n = n.led(root)
	v := n.railed(buf, c.elem, plan.Range{Hi: len(buf) / c.elem})
	wire := n.onRail(v.rails, func() task {
		return inPlace(plan.BinomialBroadcast(n.Node, n.size(), v.mine[0].Len(), n.Of(root)), v.parts[0][n.Place])
	})
	if n.Node == n.Of(root) && v.rails > 1 {
		return task{stages: append(n.inMemory(func(t *shm.Team) error { return t.Broadcast(buf, n.Leader()) }), wire...)}
	}
	return task{stages: append(wire, n.inMemory(v.share)...)}
}

// allGatherOn is the task of collecting in of all ranks in out: first in memory those of a node, of which every rank then has
// a slice on its rail; rails collect slices; and in memory ranks take those of each other. S(N-1)/N bytes for nodes of one size,
// and the least possible for any.
func (c *collective) allGatherOn(n *nodes, out, in []byte) task {
	room := n.room(out)
	v := n.railed(room, c.elem, n.Blocks(len(in)/c.elem)...)
	here := n.blockOf(room, len(in))
	if n.team == nil {
		copy(here, in)
	}
	return task{
		stages: slices.Concat(
			n.inMemory(func(t *shm.Team) error { return t.AllGather(here, in) }),
			n.onRail(v.rails, func() task { return inPlace(c.g.choose.AllGatherV(n.Node, v.mine, c.elem), room) }),
			n.inMemory(v.without(n.Node).share),
		),
		end: func(*collective) { n.settle(out, room, len(in)) },
	}
}

// gatherOn is the task of collecting in of all ranks in out of rank root. Short blocks of a node go to its leader in memory,
// and from there to root as one message; others go straight to root, but in memory where that can be. Root gets every byte
// from other nodes once.
func (c *collective) gatherOn(n *nodes, out, in []byte, root int) task {
	if !n.Together(len(in)) {
		n = n.spread(root)
	}
	n = n.led(root)
	blocks := n.Blocks(len(in) / c.elem)
	var room []byte // of root, in order of nodes
	here := in      // of a leader: the blocks of its node
	switch {
	case c.g.rank == root:
		room = n.room(out)
		here = n.blockOf(room, len(in))
		copy(here[n.Place*len(in):], in)
	case n.team != nil && n.Place == n.Leader():
		here = make([]byte, len(n.Here())*len(in))
	}
	t := task{stages: append(
		n.inMemory(func(t *shm.Team) error { return t.Gather(here, in, n.Leader()) }),
		n.onRail(1, func() task {
			return task{
				plan: plan.LinearGather(n.Node, n.Of(root), blocks[n.Node].Len(), blocks),
				src:  vector{buf: here}, dst: vector{buf: room},
			}
		})...,
	)}
	if c.g.rank == root {
		t.end = func(*collective) { n.settle(out, room, len(in)) }
	}
	return t
}

// scatterOn is gatherOn the other way.
func (c *collective) scatterOn(n *nodes, out, in []byte, root int) task {
	if !n.Together(len(out)) {
		n = n.spread(root)
	}
	n = n.led(root)
	blocks := n.Blocks(len(out) / c.elem)
	var room []byte // of root, in order of nodes
	here := out     // of a leader: the blocks of its node
	switch {
	case c.g.rank == root:
		room = n.arranged(in, len(out))
		here = n.blockOf(room, len(out))
	case n.team != nil && n.Place == n.Leader():
		here = make([]byte, len(n.Here())*len(out))
	}
	t := task{stages: append(
		n.onRail(1, func() task {
			return task{
				plan: plan.LinearScatter(n.Node, n.Of(root), blocks[n.Node].Len(), blocks),
				src:  vector{buf: room}, dst: vector{buf: here},
			}
		}),
		n.inMemory(func(t *shm.Team) error { return t.Scatter(out, here, n.Leader()) })...,
	)}
	if c.g.rank == root && n.team == nil {
		t.end = func(*collective) { copy(out, here) }
	}
	return t
}
