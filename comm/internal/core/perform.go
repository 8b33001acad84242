package core

import (
	"context"
	"time"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/hier"
	"github.com/gorun/gorun/comm/internal/pipeline"
	"github.com/gorun/gorun/comm/internal/plan"
)

const (
	// NotifyTimeout is how long a call that fails may wait until the other members know why.
	NotifyTimeout = 100 * time.Millisecond
	// CloseNotifyTimeout is the same for Close. It is longer, because no other call follows.
	CloseNotifyTimeout = time.Second
)

// perform carries c out. An error leaves the group failed. mine says that this is the goroutine of the call.
func (c *Collective) perform(mine bool) {
	returned := false
	defer func() {
		if !returned {
			c.endBroken(recover(), mine)
		}
	}()
	g := c.g
	packed := g.history.Add(c.call.Pack())
	c.before = packed.Before()
	err := g.Comm.Begin(c.seq, c.call, c.before)
	if err == nil && c.kind().UsesMemory() {
		err = c.attach()
	}
	if err == nil {
		c.beginInMemory(packed)
	}
	g.scratch.Reset()
	c.widen()
	if err == nil {
		err = c.body(c)
	}
	c.endInMemory(err)
	if err == nil {
		g.Comm.End(c.seq, nil)
	} else {
		c.err = c.fail(err)
	}
	c.forget()
	returned = true
	if c.done != nil {
		close(c.done)
	}
}

// fail ends c, and the group, with err, and returns the error of the call.
func (c *Collective) fail(err error) error {
	g := c.g
	err = g.teamFailure(err)
	g.Comm.End(c.seq, err)
	g.Comm.Fail(err)
	g.OnFailure(err)
	return c.failed(err)
}

func (c *Collective) failed(err error) error {
	return &Error{Group: c.g, Op: c.kind().String(), Seq: c.seq, Elem: c.elem, Err: err}
}

// exchange carries out t, a stage of c by messages.
func (c *Collective) exchange(t *pipeline.Task) error {
	if c.kind() == call.KindMonitoredBarrier {
		defer c.monitor()()
	}
	return c.g.Pipeline.Run(c.messages(), t)
}

func (c *Collective) exchangeInPlace(p plan.Plan, buf []byte) error {
	t := pipeline.InPlace(p, buf)
	return c.exchange(&t)
}

// messages returns c as package pipeline sees it.
func (c *Collective) messages() pipeline.Call {
	return pipeline.Call{Seq: c.seq, Call: c.call, Elem: c.elem, Caller: c}
}

// Context is that of a blocking call.
func (c *Collective) Context() context.Context { return c.ctx }

// Fail fails the group because of err, so that the other goroutine of c does not wait any longer. fail ends c.
func (c *Collective) Fail(err error) { c.g.Comm.Fail(c.g.teamFailure(err)) }

// Remaining returns how long this rank may still wait. The group's timeout begins with the first call of Remaining.
func (c *Collective) Remaining() time.Duration {
	if c.deadline.IsZero() {
		c.deadline = time.Now().Add(c.g.Timeout)
	}
	return max(time.Until(c.deadline), time.Nanosecond)
}

var alreadyDone = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

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
