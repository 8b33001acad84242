package core

import (
	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/hier"
	"github.com/gorun/gorun/comm/internal/plan"
)

// mostPlans is the most plans that a group caches.
const mostPlans = 64

// A cached entry has the plan of a call, or its route if it is carried out in stages.
type cached struct {
	plan  plan.Plan
	built bool
	route *hier.Route
}

// cached returns the cached entry of calls like c. It depends only on the call.
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

// planned returns the plan of c's call: the cached one, or what build makes.
func (c *Collective) planned(build func() plan.Plan) plan.Plan {
	k := c.cached()
	if !k.built {
		k.plan, k.built = build(), true
	}
	return k.plan
}
