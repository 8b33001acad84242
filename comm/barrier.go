package comm

import (
	"context"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/core"
)

// Barrier returns when every rank of g has called it, and all collectives that this rank has started on g have ended.
func Barrier(ctx context.Context, g *Group) error {
	return g.do(ctx, &core.Args{Kind: call.KindBarrier}, nil)
}

// IBarrier starts a Barrier and returns at once.
func IBarrier(g *Group) *Work {
	return g.start(&core.Args{Kind: call.KindBarrier}, nil)
}

// MonitoredBarrier is a [Barrier] that names every rank that does not come. Shortly before the group's timeout, or
// before ctx's deadline if that is earlier, all ranks that have come get a [MissingRanksError]. Then the group has
// failed, and stays failed. As long as all ranks come, it costs no more than a Barrier.
func MonitoredBarrier(ctx context.Context, g *Group) error {
	return g.do(ctx, &core.Args{Kind: call.KindMonitoredBarrier}, nil)
}
