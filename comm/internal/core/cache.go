package core

import (
	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/hier"
	"github.com/gorun/gorun/comm/internal/plan"
)

// mostPlans is how many plans a group keeps.
const mostPlans = 64

// A cached entry is the plan of a call, or its route if it is carried out in stages.
type cached struct {
	plan  plan.Plan
	built bool
	route *hier.Route
}

// cached returns what g keeps for calls like c. It depends on nothing but the call.
func (c *Collective) cached() *cached {
	g := c.g
	if k := g.plans[c.call]; k != nil {
		return k
	}
	if g.plans == nil || len(g.plans) == mostPlans {
		g.plans = make(map[call.Call]*cached, mostPlans)
	}
	k := new(cached)
	g.plans[c.call] = k
	return k
}

// planned is the plan of c's call: that of the last call like it, or what build makes.
func (c *Collective) planned(build func() plan.Plan) plan.Plan {
	k := c.cached()
	if !k.built {
		k.plan, k.built = build(), true
	}
	return k.plan
}
