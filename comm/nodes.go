package comm

import (
	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/shm"
)

// A group on several machines carries out its collectives in stages: the ranks of every node work together in memory, and
// some ranks of all nodes exchange by messages what that leaves. Every byte goes to another node at most once, and every
// element is combined by one rank in each stage and then copied, so that all ranks get the same bits. A stage ends before the
// next one begins: no piece of a long vector is on the wire while another is combined in memory.
//
// See plan.Nodes for rails and slices. Costs below are what a node sends to others, for N nodes and S bytes.

// nodes is where the members of a group are, and their team here.
type nodes struct {
	plan.Nodes
	choose plan.Choices
	team   *shm.Team // of the ranks of this node; nil if there is one
}

// byNodes says whether the ranks of the collective, whose turn has come, go by nodes.
func (c *collective) byNodes(ordered bool) bool {
	n := c.g.nodes
	if n == nil || !callKind(c.call.Op).isForTeams() || ordered && !n.InOrder() {
		return false
	}
	_, most := n.Sizes()
	return shm.Fits(most, c.elem)
}

// led is n with root on rail 0.
func (n *nodes) led(root int) *nodes { return &nodes{n.Led(root), n.choose, n.team} }

// spread is n with all ranks but those of root's node apart from each other.
func (n *nodes) spread(root int) *nodes {
	s := &nodes{n.Spread(n.Of(root)), n.choose, n.team}
	if len(s.Here()) == 1 {
		s.team = nil
	}
	return s
}

// size is the number of nodes.
func (n *nodes) size() int { return len(n.Members) }

// A route is how a call goes by nodes: what of it is the same whenever it comes again.
type route struct {
	*nodes
	rails int
	parts [][]plan.Range // of every range of the vector, the slices of all ranks here, in bytes
	mine  []plan.Range   // of every range, this rank's slice, in elements
	plan  plan.Plan      // of this rank's rail; nothing if it is on none
}

// railed is the route of a vector of so many bytes, or of ranges of it, in elements of elem bytes: they are cut into slices
// for rails.
func (n *nodes) railed(bytes, elem int, ranges ...plan.Range) *route {
	r := &route{nodes: n, rails: n.choose.Rails(n.Nodes, bytes)}
	for _, whole := range ranges {
		parts := n.Slices(whole, r.rails)
		r.mine = append(r.mine, parts[n.Place])
		for i, s := range parts {
			parts[i] = plan.Range{Lo: s.Lo * elem, Hi: s.Hi * elem}
		}
		r.parts = append(r.parts, parts)
	}
	return r
}

// straight is the route of what leaders exchange.
func (n *nodes) straight() *route { return &route{nodes: n, rails: 1} }

// by is r with p, the plan of this rank's node among nodes, as that of its rail.
func (r *route) by(p plan.Plan) *route {
	if ranks := r.Rail(r.rails); ranks != nil {
		r.plan = p.Among(ranks)
	}
	return r
}

// routed is the route of c's call: that of last time, or what build makes.
func (c *collective) routed(build func() *route) *route {
	k, again := c.kept()
	if !again {
		k.route = build()
	}
	return k.route
}

// leads says whether this rank is its node's on rail 0.
func (r *route) leads() bool { return r.Place == r.Leader() }

// own is this rank's slice of work.
func (r *route) own(work []byte) []byte {
	mine := r.parts[0][r.Place]
	return work[mine.Lo:mine.Hi]
}

// inMemory is the stage of what the ranks of this node do together, if there are several.
func (c *collective) inMemory(r *route, part func(t *shm.Team) error) error {
	if r.team == nil {
		return nil
	}
	return c.together(part(r.team))
}

// onRail is the stage of this rank's rail, if it is on one: t without its plan.
func (c *collective) onRail(r *route, t task) error {
	if len(r.plan) == 0 {
		return nil
	}
	t.plan = r.plan
	return c.execute(&t)
}

// combineSlices is the stage that leaves this rank's slices of what ranks here have together in work.
func (c *collective) combineSlices(r *route, work []byte) error {
	return c.inMemory(r, func(t *shm.Team) error {
		if r.rails == 1 {
			return t.Reduce(work, c.folding(), r.Leader())
		}
		for _, parts := range r.parts {
			if err := t.ReduceParts(work, parts, c.folding()); err != nil {
				return err
			}
			t.Next()
		}
		return nil
	})
}

// shareSlices is the stage that gives ranks here each other's slices of work.
func (c *collective) shareSlices(r *route, work []byte) error {
	return c.inMemory(r, func(t *shm.Team) error {
		if r.rails == 1 {
			return t.Broadcast(work, r.Leader())
		}
		for _, parts := range r.parts {
			if err := t.ShareParts(work, parts); err != nil {
				return err
			}
			t.Next()
		}
		return nil
	})
}

// barrierOn: ranks here come to their leader, leaders of all nodes wait for each other, and let theirs go. ceil(log2 N) steps
// between nodes.
func (c *collective) barrierOn(n *nodes) error {
	r := c.routed(func() *route { return n.straight().by(plan.DisseminationBarrier(n.Node, n.size())) })
	if err := c.inMemory(r, func(t *shm.Team) error { return t.Gather(nil, nil, r.Leader()) }); err != nil {
		return err
	}
	if err := c.onRail(r, task{}); err != nil {
		return err
	}
	return c.inMemory(r, func(t *shm.Team) error { return t.Broadcast(nil, r.Leader()) })
}
