package core

import (
	"context"
	"time"

	"github.com/gorun/gorun/comm/internal/call"
)

// A MonitoredBarrier begins to ask which ranks have come monitorTime before its deadline, or when half of its time has
// passed if that is later.
const monitorTime = 4 * time.Second

// MonitoredBarrier is a Barrier that names every rank that does not come.
func (g *Group) MonitoredBarrier(ctx context.Context) error {
	return g.Do(ctx, &Args{Kind: call.KindMonitoredBarrier}, nil)
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
