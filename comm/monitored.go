package comm

import (
	"context"
	"time"
)

// rollCallTime is how long before its time is up a MonitoredBarrier begins to ask who is there, at most; half of its time
// if that is less.
const rollCallTime = 4 * time.Second

// MonitoredBarrier is a [Barrier] that names every rank that does not come: when the group's timeout is nearly over, or
// ctx's deadline if that is earlier, all ranks that have come get a [MissingRanksError]. The group then stays failed. It
// costs no more than a Barrier as long as all ranks come.
func MonitoredBarrier(ctx context.Context, g *Group) error {
	return meeting(new(collective), g, callMonitoredBarrier).run(ctx)
}

// callRoll lets c, a MonitoredBarrier, ask all ranks whether they have come, unless stop is called in time. One rank does so
// for all, as a rule the first.
func (c *collective) callRoll() (stop func()) {
	deadline := time.Now().Add(c.left())
	if d, ok := c.ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	g, left := c.g, time.Until(deadline)
	span := min(left/2, rollCallTime)
	turn := span / 8 * time.Duration(g.rank) / time.Duration(g.Size())
	ctx, cancel := context.WithDeadline(context.Background(), deadline.Add(-span/8))
	start := time.AfterFunc(left-span+turn, func() {
		g.lane.Go(func() { g.lane.RollCall(ctx, c.seq, max(span/8, time.Millisecond)) })
	})
	return func() {
		start.Stop()
		cancel()
	}
}
