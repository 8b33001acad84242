package hier

import (
	"github.com/gorun/gorun/comm/internal/pipeline"
	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/shm"
)

// AllToAll sends block r of In to rank r, and receives block r of Out from there. Every byte goes to another node once,
// as one message for every two ranks or, if blocks are short, for every two nodes.
func (c *Call) AllToAll() error {
	size := len(c.In) / c.Size
	if _, most := c.Sizes(); c.Planner.Together(c.Nodes, most*size) {
		return c.allToAllByLeaders(size)
	}
	return c.allToAllDirect(size)
}

// allToAllDirect sends blocks of size bytes directly: in memory to ranks of this node, and as messages to others.
func (c *Call) allToAllDirect(size int) error {
	r := c.route(func() *Route {
		blocks := plan.EqualBlocks(c.Size, size/c.Elem)
		return &Route{Layout: c.Layout, pieces: []piece{{plan: plan.PairwiseAllToAll(nil, c.Rank, blocks, blocks).Without(c.Here())}}}
	})
	sent := c.pick(c.In, c.Here(), size)
	got := sent
	if c.Team != nil {
		got = c.Scratch.Take(len(sent))
	}
	c.inMemory(r, func(t *shm.Team) error { return t.AllToAll(got, sent) })
	unpack(c.Out, c.Here(), size, got)
	c.onRail(r, pipeline.Task{Src: pipeline.Vector{Buf: c.In}, Dst: pipeline.Vector{Buf: c.Out}})
	return c.err
}

// allToAllByLeaders lets leaders gather In of the ranks of their nodes in memory, exchange blocks, and scatter them in
// memory.
func (c *Call) allToAllByLeaders(size int) error {
	here, whole := len(c.Here()), len(c.In)
	r := c.route(func() *Route {
		blocks := c.Blocks(here * size / c.Elem)
		return c.ofLeaders().byOne(plan.PairwiseAllToAll(nil, c.Node, blocks, blocks))
	})
	in, out := c.In, c.Out // of the ranks of this node, one after the other
	if r.Team != nil && r.isLeader() {
		in, out = c.Scratch.Take(here*whole), c.Scratch.Take(here*whole)
	}
	c.inMemory(r, func(t *shm.Team) error { return t.Gather(in, c.In, r.Leader()) })
	if r.isLeader() {
		c.exchangeByLeaders(r, out, in, size)
	}
	c.inMemory(r, func(t *shm.Team) error { return t.Scatter(c.Out, out, r.Leader()) })
	return c.err
}

// exchangeByLeaders is what a leader does. in has In of all ranks of this node, one after the other. It sends it to the
// leaders of other nodes, and fills out, which becomes Out of these ranks.
func (c *Call) exchangeByLeaders(r *Route, out, in []byte, size int) {
	here, whole := len(r.Here()), len(c.In)
	packed, arrived := c.Scratch.Take(len(in)), c.Scratch.Take(len(in))
	rest := packed
	for _, members := range r.Members { // for every node: what each rank here sends to the ranks there
		for from := range here {
			rest = rest[pack(rest, in[from*whole:], members, size):]
		}
	}
	c.onRail(r, pipeline.Task{Src: pipeline.Vector{Buf: packed}, Dst: pipeline.Vector{Buf: arrived}})
	rest = arrived
	for _, from := range r.Order() { // from every node: what each rank there sends to the ranks here
		for to := range here {
			copy(out[to*whole+from*size:][:size], rest)
			rest = rest[size:]
		}
	}
}
