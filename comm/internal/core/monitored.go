package core

import (
	"context"
	"time"

	"github.com/gorun/gorun/comm/internal/call"
)

// monitorTime is how long before its time is up a MonitoredBarrier begins to ask who is there, at most; half of its time
// if that is less.
const monitorTime = 4 * time.Second

// MonitoredBarrier is a Barrier that names every rank that does not come.
func (g *Group) MonitoredBarrier(ctx context.Context) error {
	return new(Collective).meeting(g, call.KindMonitoredBarrier).Run(ctx)
}

// monitor lets c, a MonitoredBarrier, ask all ranks whether they have come, unless stop is called in time. One rank does so
// for all, as a rule the first.
func (c *Collective) monitor() (stop func()) {
	deadline := time.Now().Add(c.left())
	if d, ok := c.ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	g, left := c.g, time.Until(deadline)
	span := min(left/2, monitorTime)
	turn := span / 8 * time.Duration(g.rank) / time.Duration(g.Size())
	ctx, cancel := context.WithDeadline(context.Background(), deadline.Add(-span/8))
	start := time.AfterFunc(left-span+turn, func() {
		g.Lane.Go(func() { g.Lane.Monitor(ctx, c.seq, max(span/8, time.Millisecond)) })
	})
	return func() {
		start.Stop()
		cancel()
	}
}
