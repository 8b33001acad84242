package embedded

import (
	"context"
	"sync"

	"google.golang.org/grpc/stats"
)

// connections counts the clients that have been let in.
type connections struct {
	mu   sync.Mutex
	n    int
	none chan struct{} // closed while n is 0
}

func newConnections() *connections {
	c := &connections{none: make(chan struct{})}
	close(c.none)
	return c
}

// wait returns when there are none, when ctx ends, or when over is closed.
func (c *connections) wait(ctx context.Context, over <-chan struct{}) {
	c.mu.Lock()
	none := c.none
	c.mu.Unlock()
	select {
	case <-none:
	case <-ctx.Done():
	case <-over:
	}
}

// HandleConn is called by gRPC once for each begin and end.
func (c *connections) HandleConn(_ context.Context, s stats.ConnStats) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch s.(type) {
	case *stats.ConnBegin:
		if c.n++; c.n == 1 {
			c.none = make(chan struct{})
		}
	case *stats.ConnEnd:
		if c.n--; c.n == 0 {
			close(c.none)
		}
	}
}

// TagConn does nothing.
func (c *connections) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// TagRPC does nothing.
func (c *connections) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC does nothing.
func (c *connections) HandleRPC(context.Context, stats.RPCStats) {}
