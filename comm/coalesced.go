package comm

import (
	"context"

	"github.com/gorun/gorun/comm/internal/core"
)

// AllReduceCoalesced is an AllReduce of many buffers at once, which is much faster for short ones. Every rank passes the same number of
// buffers, at least one, with the same lengths in the same order.
func AllReduceCoalesced[T Element](ctx context.Context, g *Group, bufs [][]T, op Op) error {
	return public(allReduceCoalesced(g.untyped().Spare(), g, bufs, op).Do(ctx))
}

// IAllReduceCoalesced starts an AllReduceCoalesced and returns at once.
func IAllReduceCoalesced[T Element](g *Group, bufs [][]T, op Op) *Work {
	return startCollective(func(c *core.Collective) { allReduceCoalesced(c, g, bufs, op) })
}

func allReduceCoalesced[T Element](c *core.Collective, g *Group, bufs [][]T, op Op) *core.Collective {
	all := core.Data{Type: typeOf[T]()}
	for _, b := range bufs {
		c.AddOut(data(b).Bytes)
		all.Count += len(b)
	}
	return c.AllReduceCoalesced(g.untyped(), all, reductionOf(op))
}
