package comm

import (
	"slices"

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

// onNodes is where the ranks of the collective, whose turn has come, share memory, if they are to go by nodes.
func (c *collective) onNodes(ordered bool) *nodes {
	n := c.g.nodes
	if n == nil || !callKind(c.call.Op).isForTeams() || ordered && !n.InOrder() {
		return nil
	}
	if _, most := n.Sizes(); !shm.Fits(most, c.elem) {
		return nil
	}
	return n
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

// inMemory is the stage of what the ranks of this node do together, if there are several.
func (n *nodes) inMemory(part func(t *shm.Team) error) []task {
	if n.team == nil {
		return nil
	}
	return []task{{team: func(_ *collective, t *shm.Team) error { return part(t) }}}
}

// onRail is the stage of this rank's rail, of so many, if it is on one: t makes its task, for which nodes are ranks.
func (n *nodes) onRail(rails int, t func() task) []task {
	ranks := n.Rail(rails)
	if ranks == nil {
		return nil
	}
	stage := t()
	stage.plan = stage.plan.Among(ranks)
	return []task{stage}
}

// A railed is a vector, or ranges of it, cut into slices for rails.
type railed struct {
	*nodes
	work  []byte
	rails int
	parts [][][]byte   // of every range, the slices of all ranks here
	mine  []plan.Range // of every range, this rank's slice, in elements
}

// railed cuts ranges of work, in elements of elem bytes.
func (n *nodes) railed(work []byte, elem int, ranges ...plan.Range) *railed {
	v := &railed{nodes: n, work: work, rails: n.choose.Rails(n.Nodes, len(work))}
	for _, r := range ranges {
		cuts := n.Slices(r, v.rails)
		parts := make([][]byte, len(cuts))
		for i, s := range cuts {
			parts[i] = work[s.Lo*elem : s.Hi*elem]
		}
		v.parts, v.mine = append(v.parts, parts), append(v.mine, cuts[n.Place])
	}
	return v
}

// without is v but for range k.
func (v railed) without(k int) *railed {
	v.parts, v.mine = slices.Delete(slices.Clone(v.parts), k, k+1), slices.Delete(slices.Clone(v.mine), k, k+1)
	return &v
}

// combine leaves this rank's slices of what ranks here have together.
func (v *railed) combine(t *shm.Team, red shm.Reduction) error {
	if v.rails == 1 {
		return t.Reduce(v.work, red, v.Leader())
	}
	for _, parts := range v.parts {
		if err := t.ReduceParts(parts[v.Place], parts, red); err != nil {
			return err
		}
		t.Next()
	}
	return nil
}

// share gives ranks here each other's slices.
func (v *railed) share(t *shm.Team) error {
	if v.rails == 1 {
		return t.Broadcast(v.work, v.Leader())
	}
	for _, parts := range v.parts {
		if err := t.ShareParts(parts); err != nil {
			return err
		}
		t.Next()
	}
	return nil
}

// barrier: ranks here come to their leader, leaders of all nodes wait for each other, and let theirs go. ceil(log2 N) steps
// between nodes.
func (n *nodes) barrier() task {
	return task{stages: slices.Concat(
		n.inMemory(func(t *shm.Team) error { return t.Gather(nil, nil, n.Leader()) }),
		n.onRail(1, func() task { return task{plan: plan.DisseminationBarrier(n.Node, n.size())} }),
		n.inMemory(func(t *shm.Team) error { return t.Broadcast(nil, n.Leader()) }),
	)}
}
