package hier

import (
	"github.com/gorun/gorun/comm/internal/choice"
	"github.com/gorun/gorun/comm/internal/plan"
)

// A Route says how the bytes of a call get from node to node. Calls with the same arguments have the same Route, so it
// is cached.
type Route struct {
	*Layout
	rails  int
	pieces []piece // a single one if the call moves blocks, or nothing
}

// route returns the route of c: the one that it has, or what build makes.
func (c *Call) route(build func() *Route) *Route {
	if c.Route == nil {
		c.Route = build()
	}
	return c.Route
}

// rootedAt returns l with root on rail 0.
func (l *Layout) rootedAt(root int) *Layout {
	rooted := *l
	rooted.Nodes = l.RootedAt(root)
	return &rooted
}

// spread returns l with every rank that is not on root's node on a node of its own.
func (l *Layout) spread(root int) *Layout {
	s := *l
	if s.Nodes = l.Spread(l.Of(root)); len(s.Here()) == 1 {
		s.Team = nil
	}
	return &s
}

// nodes is the number of nodes.
func (l *Layout) nodes() int { return len(l.Members) }

// inSlices returns the route of a vector of so many bytes, of which each range is cut into a slice for each rail.
// Ranges are in elements of elem bytes, one after the other.
func (l *Layout) inSlices(bytes, elem int, ranges ...plan.Range) *Route {
	r := &Route{Layout: l, rails: l.Planner.Rails(l.Nodes, bytes)}
	r.pieces = make([]piece, l.countPieces(bytes, r.rails, len(ranges)))
	for _, whole := range ranges {
		slices := l.Slices(whole, r.rails)
		for i := range r.pieces {
			r.pieces[i].add(slices, i, len(r.pieces), l.LocalRank, elem)
		}
	}
	return r
}

// planner returns the planner of this rank's rail.
func (r *Route) planner() plan.Planner {
	c := r.Planner
	c.Pieces = len(r.pieces)
	return c
}

// mostJoined returns the most bytes of blocks that may travel as one message: none on several rails, where slices of
// other ranks lie between them.
func (r *Route) mostJoined() int {
	if r.rails == 1 {
		return choice.Any
	}
	return 0
}

// ofLeaders returns the route of what the leaders of nodes exchange.
func (l *Layout) ofLeaders() *Route { return &Route{Layout: l, rails: 1, pieces: make([]piece, 1)} }

// by sets the plan of this rank's rail for each piece. build numbers nodes; by puts the rail's ranks in their place. It
// returns r.
func (r *Route) by(build func(p *piece) plan.Plan) *Route {
	if ranks := r.Rail(r.rails); ranks != nil {
		for i := range r.pieces {
			p := &r.pieces[i]
			p.plan = build(p).Among(ranks)
		}
	}
	return r
}

// byOne is by for a call that goes through the stages at once.
func (r *Route) byOne(p plan.Plan) *Route { return r.by(func(*piece) plan.Plan { return p }) }

// isLeader reports whether this rank is on rail 0.
func (r *Route) isLeader() bool { return r.LocalRank == r.Leader() }

// Between nodes, vectors with a block for every rank are in order of nodes: the blocks of one node are one range.

// blocksHere returns the blocks of size bytes of this node's ranks in ordered, which is in order of nodes.
func (l *Layout) blocksHere(ordered []byte, size int) []byte {
	before := 0
	for _, members := range l.Members[:l.Node] {
		before += len(members)
	}
	return ordered[before*size:][:len(l.Here())*size]
}

// inNodeOrder returns memory for the blocks of buf in order of nodes: buf itself if that is the order of ranks.
func (c *Call) inNodeOrder(l *Layout, buf []byte) []byte {
	if l.InOrder() {
		return buf
	}
	return c.Scratch.Take(len(buf))
}

// inRankOrder copies blocks of size bytes from ordered, where they are in order of nodes, to buf.
func (l *Layout) inRankOrder(buf, ordered []byte, size int) {
	if !l.InOrder() {
		unpack(buf, l.Order(), size, ordered)
	}
}

// pick returns a copy of the blocks of size bytes of buf that belong to ranks, one after the other.
func (c *Call) pick(buf []byte, ranks []int, size int) []byte {
	packed := c.Scratch.Take(len(ranks) * size)
	pack(packed, buf, ranks, size)
	return packed
}

// pack copies the blocks of size bytes of buf that belong to ranks to dst, one after the other, and returns how many
// bytes they are.
func pack(dst, buf []byte, ranks []int, size int) int {
	for i, r := range ranks {
		copy(dst[i*size:], buf[r*size:(r+1)*size])
	}
	return len(ranks) * size
}

// unpack copies the blocks in packed to where the blocks of ranks are in buf. It is the inverse of pack.
func unpack(buf []byte, ranks []int, size int, packed []byte) {
	for i, r := range ranks {
		copy(buf[r*size:(r+1)*size], packed[i*size:])
	}
}
