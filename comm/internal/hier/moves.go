package hier

import (
	"slices"

	"github.com/gorun/gorun/comm/internal/pipeline"
	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/shm"
)

// Broadcast copies Out of the root to Out of every rank. The ranks of the root's node copy it in memory, rails carry slices to all
// nodes, and the ranks there copy each other's slices in memory. S bytes to each node, in ceil(log2 N) steps. If there is only one
// rail, which the root itself is on, the ranks of its node copy Out last.
func (c *Call) Broadcast() error {
	buf := c.Out
	r := c.route(func() *Route {
		l := c.rootedAt(c.RootRank)
		r := l.inSlices(len(buf), c.Elem, plan.Range{Hi: len(buf) / c.Elem})
		return r.by(plan.BinomialBroadcast(l.Node, l.nodes(), r.mine[0].Len(), l.Root))
	})
	wire := pipeline.InPlace(nil, r.own(buf))
	if r.Node == r.Root && r.rails > 1 {
		c.inMemory(r, func(t *shm.Team) error { return t.Broadcast(buf, r.Leader()) })
		c.onRail(r, wire)
	} else {
		c.onRail(r, wire)
		c.allGatherSlices(r, buf)
	}
	return c.err
}

// AllGather collects In of all ranks in Out. First the ranks of a node collect their blocks in memory. Then each rail collects its
// slices of the nodes' blocks. Then the ranks of a node copy each other's slices in memory. S(N-1)/N bytes if nodes have equally many
// ranks; the least possible for any nodes.
func (c *Call) AllGather() error {
	out, in := c.Out, c.In
	ordered := c.inNodeOrder(c.Layout, out)
	r := c.route(func() *Route {
		r := c.inSlices(len(ordered), c.Elem, c.Blocks(len(in)/c.Elem)...)
		r.slices = slices.Delete(r.slices, c.Node, c.Node+1) // the ranks of this node have its blocks by then
		return r.by(c.Choose.AllGatherV(c.Node, r.mine, c.Elem))
	})
	here := c.blocksHere(ordered, len(in))
	if r.Team == nil {
		copy(here, in)
	}
	c.inMemory(r, func(t *shm.Team) error { return t.AllGather(here, in) })
	c.onRail(r, pipeline.InPlace(nil, ordered))
	c.allGatherSlices(r, ordered)
	c.inRankOrder(out, ordered, len(in))
	return c.err
}

// withRoot returns the route of blocks of so many bytes from or to the root. build makes its plan. Short blocks of a node travel as one
// message, which the node's leader gathers or scatters. Longer ones travel directly between their rank and the root: in memory on the
// root's node, and otherwise as messages.
func (c *Call) withRoot(bytes int, build func(p plan.Plan, rank, root, n int, blocks []plan.Range) plan.Plan) *Route {
	return c.route(func() *Route {
		l := c.Layout
		if !l.Together(bytes) {
			l = l.spread(c.RootRank)
		}
		l = l.rootedAt(c.RootRank)
		blocks := l.Blocks(bytes / c.Elem)
		return l.ofLeaders().by(build(nil, l.Node, l.Root, blocks[l.Node].Len(), blocks))
	})
}

// Gather collects In of all ranks in Out of the root: each leader collects the blocks of its node in memory, and sends them to the root
// as a message. The root gets every byte from other nodes once.
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

// Scatter sends block r of In of the root to Out of rank r. It is Gather in the other direction.
func (c *Call) Scatter() error {
	out, in := c.Out, c.In
	r := c.withRoot(len(out), plan.LinearScatter)
	atRoot := c.Rank == c.RootRank
	var ordered []byte // on the root: all blocks, in order of nodes
	here := out        // on a leader: the blocks of its node
	switch {
	case atRoot:
		ordered = in
		if !r.InOrder() {
			ordered = c.pick(in, r.Order(), len(out))
		}
		here = r.blocksHere(ordered, len(out))
	case r.Team != nil && r.isLeader():
		here = c.Scratch.Take(len(r.Here()) * len(out))
	}
	c.onRail(r, pipeline.Task{Src: pipeline.Vector{Buf: ordered}, Dst: pipeline.Vector{Buf: here}})
	if atRoot && r.Team == nil {
		copy(out, here)
	}
	c.inMemory(r, func(t *shm.Team) error { return t.Scatter(out, here, r.Leader()) })
	return c.err
}

// AllToAll sends block r of In to rank r, and receives block r of Out from there. Every byte goes to another node once, as one message
// for every two ranks or, if blocks are short, for every two nodes.
func (c *Call) AllToAll() error {
	size := len(c.In) / c.Size
	if _, most := c.Sizes(); c.Together(most * size) {
		return c.allToAllByLeaders(size)
	}
	return c.allToAllDirect(size)
}

// allToAllDirect sends blocks of size bytes directly: in memory to ranks of this node, and as messages to others.
func (c *Call) allToAllDirect(size int) error {
	r := c.route(func() *Route {
		blocks := plan.EqualBlocks(c.Size, size/c.Elem)
		return &Route{Layout: c.Layout, plan: plan.PairwiseAllToAll(nil, c.Rank, blocks, blocks).Without(c.Here())}
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

// allToAllByLeaders lets leaders gather In of the ranks of their nodes in memory, exchange blocks, and scatter them in memory.
func (c *Call) allToAllByLeaders(size int) error {
	here, whole := len(c.Here()), len(c.In)
	r := c.route(func() *Route {
		blocks := c.Blocks(here * size / c.Elem)
		return c.ofLeaders().by(plan.PairwiseAllToAll(nil, c.Node, blocks, blocks))
	})
	in, out := c.In, c.Out // of the ranks of this node, one after the other
	if r.Team != nil && r.isLeader() {
		in, out = c.Scratch.Take(here*whole), c.Scratch.Take(here*whole)
	}
	c.inMemory(r, func(t *shm.Team) error { return t.Gather(in, c.In, r.Leader()) })
	if r.isLeader() {
		c.exchange(r, out, in, size)
	}
	c.inMemory(r, func(t *shm.Team) error { return t.Scatter(c.Out, out, r.Leader()) })
	return c.err
}

// exchange sends in, which is In of the ranks of this node, to the leaders of other nodes, and leaves Out of these ranks in out.
func (c *Call) exchange(r *Route, out, in []byte, size int) {
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
