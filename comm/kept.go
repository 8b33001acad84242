package comm

import (
	"slices"

	"github.com/gorun/gorun/comm/internal/endpoint"
	"github.com/gorun/gorun/comm/internal/plan"
)

// mostPlans is how many plans a group keeps.
const mostPlans = 64

// A keptPlan is the plan of a call, for blocks of those lengths if ranks may differ in these; or its route, if it goes by nodes.
type keptPlan struct {
	plan    plan.Plan
	out, in []plan.Range
	route   *route
}

// kept is what is kept for c's call, and whether that is something.
func (c *collective) kept() (k *keptPlan, again bool) {
	g := c.g
	if k, again = g.plans[c.call]; again {
		return k, true
	}
	if g.plans == nil || len(g.plans) == mostPlans {
		g.plans = make(map[endpoint.Call]*keptPlan, mostPlans)
	}
	k = new(keptPlan)
	g.plans[c.call] = k
	return k, false
}

// planned is the plan of c's call, which with the blocks of out and in says all that it depends on: that of last time, or what
// build makes.
func (c *collective) planned(build func() plan.Plan) plan.Plan {
	k, again := c.kept()
	if !again || !slices.Equal(k.out, c.out.blocks) || !slices.Equal(k.in, c.in.blocks) {
		k.plan = build()
		k.out, k.in = append(k.out[:0], c.out.blocks...), append(k.in[:0], c.in.blocks...)
	}
	return k.plan
}
