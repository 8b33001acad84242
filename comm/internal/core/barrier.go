package core

import (
	"context"
	"time"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/pipeline"
	"github.com/gorun/gorun/comm/internal/plan"
)

// Barrier makes c a Barrier.
func (c *Collective) Barrier(g *Group) *Collective { return c.synchronization(g, call.KindBarrier) }

// synchronization makes c a collective that moves nothing: it only makes sure that all ranks make the same call.
func (c *Collective) synchronization(g *Group, kind call.Kind) *Collective {
	c.is(g, kind, 0, 0)
	c.body = (*Collective).synchronize
	return c
}

func (c *Collective) synchronize() error {
	if t := c.teamOfAll(); t != nil {
		return t.Barrier()
	}
	if h := c.inStages(false); h != nil {
		return h.Barrier()
	}
	return c.exchange(&pipeline.Task{Plan: c.planned(func() plan.Plan {
		return c.g.Choose.Barrier(c.g.rank, c.g.Size())
	})})
}

// A MonitoredBarrier begins to ask which ranks have come monitorTime before its deadline, or when half of its time has
// passed if that is later.
const monitorTime = 4 * time.Second

// MonitoredBarrier is a Barrier that names every rank that does not come.
func (g *Group) MonitoredBarrier(ctx context.Context) error {
	return new(Collective).synchronization(g, call.KindMonitoredBarrier).Run(ctx)
}

// monitor makes c, a MonitoredBarrier, ask all ranks whether they have come, unless stop is called before. One rank
// asks for all, usually the first one.
func (c *Collective) monitor() (stop func()) {
	deadline := time.Now().Add(c.Remaining())
	if d, ok := c.ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	g, remaining := c.g, time.Until(deadline)
	span := min(remaining/2, monitorTime)
	delay := span / 8 * time.Duration(g.rank) / time.Duration(g.Size()) // so that the first rank that has come asks before the others
	ctx, cancel := context.WithDeadline(context.Background(), deadline.Add(-span/8))
	start := time.AfterFunc(remaining-span+delay, func() {
		g.Comm.Go(func() { g.Comm.Monitor(ctx, c.seq, max(span/8, time.Millisecond)) })
	})
	return func() {
		start.Stop()
		cancel()
	}
}
