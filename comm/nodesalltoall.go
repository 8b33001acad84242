package comm

import (
	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/shm"
)

// allToAllOn brings block r of in to rank r, and block r of out from there. Every byte goes to another node once, as one message
// for every two ranks or, if blocks are short, for every two nodes.
func (c *collective) allToAllOn(n *nodes) error {
	size := len(c.in.buf) / c.g.Size()
	if _, most := n.Sizes(); n.Together(most * size) {
		return c.allToAllByLeaders(n, size)
	}
	return c.allToAllStraight(n, size)
}

// allToAllStraight brings blocks of size bytes straight where they belong: in memory to ranks of this node, and to others as
// messages.
func (c *collective) allToAllStraight(n *nodes, size int) error {
	r := c.routed(func() *route {
		blocks := equalBlocks(c.g.Size(), size/c.elem)
		return &route{nodes: n, plan: plan.PairwiseAllToAll(nil, c.g.rank, blocks, blocks).Without(n.Here())}
	})
	given := c.picked(c.in.buf, n.Here(), size)
	got := given
	if n.team != nil {
		got = c.g.memory(len(given))
	}
	if err := c.inMemory(r, func(t *shm.Team) error { return t.AllToAll(got, given) }); err != nil {
		return err
	}
	put(c.out.buf, n.Here(), size, got)
	return c.onRail(r, task{src: c.in, dst: c.out})
}

// allToAllByLeaders lets leaders collect in of the ranks of their nodes in memory, exchange blocks, and deal them out in memory.
func (c *collective) allToAllByLeaders(n *nodes, size int) error {
	here, whole := len(n.Here()), len(c.in.buf)
	r := c.routed(func() *route {
		blocks := n.Blocks(here * size / c.elem)
		return n.straight().by(plan.PairwiseAllToAll(nil, n.Node, blocks, blocks))
	})
	all, dealt := c.in.buf, c.out.buf // of the ranks here, one after the other
	if r.team != nil && r.leads() {
		all, dealt = c.g.memory(here*whole), c.g.memory(here*whole)
	}
	if err := c.inMemory(r, func(t *shm.Team) error { return t.Gather(all, c.in.buf, r.Leader()) }); err != nil {
		return err
	}
	if r.leads() {
		if err := c.exchange(r, dealt, all, size); err != nil {
			return err
		}
	}
	return c.inMemory(r, func(t *shm.Team) error { return t.Scatter(c.out.buf, dealt, r.Leader()) })
}

// exchange lets a leader send all, which is in of the ranks here, to other nodes, and leave out of those in dealt.
func (c *collective) exchange(r *route, dealt, all []byte, size int) error {
	here, whole := len(r.Here()), len(c.in.buf)
	packed, arrived := c.g.memory(len(all)), c.g.memory(len(all))
	rest := packed
	for _, members := range r.Members { // for every node, what each rank here has for the ranks there
		for from := range here {
			rest = rest[pick(rest, all[from*whole:], members, size):]
		}
	}
	if err := c.onRail(r, task{src: vector{buf: packed}, dst: vector{buf: arrived}}); err != nil {
		return err
	}
	rest = arrived
	for _, from := range r.Order() { // from every node, what each rank there has for the ranks here
		for to := range here {
			copy(dealt[to*whole+from*size:][:size], rest)
			rest = rest[size:]
		}
	}
	return nil
}
