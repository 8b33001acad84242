package hier

import "github.com/gorun/gorun/comm/internal/plan"

// A Route is how a call gets from node to node: what of it is the same whenever it comes again.
type Route struct {
	*Layout
	rails int
	parts [][]plan.Range // of every range of the vector, the slices of all ranks here, in bytes
	mine  []plan.Range   // of every range, this rank's slice, in elements
	plan  plan.Plan      // of this rank's rail; nothing if it is on none
}

// route is the route of c: that of the last call like it, or what build makes.
func (c *Call) route(build func() *Route) *Route {
	if *c.Route == nil {
		*c.Route = build()
	}
	return *c.Route
}

// ledBy is l with root on rail 0.
func (l *Layout) ledBy(root int) *Layout { return &Layout{l.Led(root), l.Choose, l.Team} }

// spread is l with every rank that is not on root's node on a node of its own.
func (l *Layout) spread(root int) *Layout {
	s := &Layout{l.Spread(l.Of(root)), l.Choose, l.Team}
	if len(s.Here()) == 1 {
		s.Team = nil
	}
	return s
}

// nodes is the number of nodes.
func (l *Layout) nodes() int { return len(l.Members) }

// inSlices is the route of a vector of so many bytes, or of ranges of it, in elements of elem bytes, which are cut into a slice for
// each rail.
func (l *Layout) inSlices(bytes, elem int, ranges ...plan.Range) *Route {
	r := &Route{Layout: l, rails: l.Choose.Rails(l.Nodes, bytes)}
	for _, whole := range ranges {
		parts := l.Slices(whole, r.rails)
		r.mine = append(r.mine, parts[l.Place])
		for i, s := range parts {
			parts[i] = plan.Range{Lo: s.Lo * elem, Hi: s.Hi * elem}
		}
		r.parts = append(r.parts, parts)
	}
	return r
}

// ofLeaders is the route of what the leaders of nodes exchange.
func (l *Layout) ofLeaders() *Route { return &Route{Layout: l, rails: 1} }

// by is r with p, the plan of this rank's node among nodes, as that of its rail.
func (r *Route) by(p plan.Plan) *Route {
	if ranks := r.Rail(r.rails); ranks != nil {
		r.plan = p.Among(ranks)
	}
	return r
}

// leads reports whether this rank is its node's on rail 0.
func (r *Route) leads() bool { return r.Place == r.Leader() }

// own is this rank's slice of work.
func (r *Route) own(work []byte) []byte {
	mine := r.parts[0][r.Place]
	return work[mine.Lo:mine.Hi]
}
