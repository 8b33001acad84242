package comm

import (
	"github.com/gorun/gorun/comm/internal/endpoint"
	"github.com/gorun/gorun/comm/internal/plan"
)

// mostPlans is how many plans a group keeps.
const mostPlans = 64

// A keptPlan is the plan of a call, or its route if it goes by nodes.
type keptPlan struct {
	plan  plan.Plan
	route *route
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

// planned is the plan of c's call, which says all that it depends on: that of last time, or what build makes.
func (c *collective) planned(build func() plan.Plan) plan.Plan {
	k, again := c.kept()
	if !again {
		k.plan = build()
	}
	return k.plan
}
