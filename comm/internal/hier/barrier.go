package hier

import (
	"github.com/gorun/gorun/comm/internal/pipeline"
	"github.com/gorun/gorun/comm/internal/shm"
)

// Barrier returns when all ranks have called it: each leader waits for the ranks of its node, the leaders wait for each
// other, and then they release the ranks of their nodes. ceil(log2 N) steps between nodes, or one.
func (c *Call) Barrier() error {
	r := c.route(func() *Route {
		return c.ofLeaders().byOne(c.Planner.Barrier(c.Node, c.nodes()))
	})
	c.inMemory(r, func(t *shm.Team) error { return t.Gather(nil, nil, r.Leader()) })
	c.onRail(r, pipeline.Task{})
	c.inMemory(r, func(t *shm.Team) error { return t.Broadcast(nil, r.Leader()) })
	return c.err
}
