package comm

import (
	"context"

	"github.com/gorun/gorun/comm/internal/endpoint"
	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/reduce"
	"github.com/gorun/gorun/comm/internal/shm"
)

// Barrier returns when every rank of g has called it, and all collectives that this rank has started on g have ended.
func Barrier(ctx context.Context, g *Group) error {
	call := endpoint.InWords(uint8(callBarrier), 0, 0, 0, 0)
	if t := g.enter(ctx, call, 1); t != nil {
		return g.leave(t, t.Barrier())
	}
	if done, err := g.flatly(ctx, call, 1, (*collective).flatBarrier); done {
		return err
	}
	return barrier(g).run(ctx)
}

// IBarrier starts a Barrier and returns at once.
func IBarrier(g *Group) *Work { return barrier(g).start() }

func barrier(g *Group) *collective { return meeting(g, endpoint.Call{Op: uint8(callBarrier)}) }

// meeting is a collective that moves nothing: it makes sure that all ranks make the same call.
func meeting(g *Group, call endpoint.Call) *collective {
	c := &collective{g: g, call: call, elem: 1}
	c.begin = func() task {
		if c.hasTeam() {
			return task{team: (*shm.Team).Barrier}
		}
		if n := c.onNodes(false); n != nil {
			return n.barrier()
		}
		return task{plan: plan.DisseminationBarrier(g.rank, g.Size())}
	}
	return c
}

// Broadcast copies buf of rank src to buf of every rank of g. buf has the same length on all ranks.
func Broadcast[T Element](ctx context.Context, g *Group, buf []T, src int) error {
	if g.has(src) {
		call, elem := quickMove[T](callBroadcast, len(buf), src)
		if t := g.enter(ctx, call, elem); t != nil {
			return g.leave(t, t.Broadcast(reduce.Bytes(buf), src))
		}
		if done, err := g.flatly(ctx, call, elem, func(c *collective) task {
			return c.flatBroadcast(reduce.Bytes(buf), src)
		}); done {
			return err
		}
	}
	return broadcast(g, buf, src).run(ctx)
}

// IBroadcast starts a Broadcast and returns at once.
func IBroadcast[T Element](g *Group, buf []T, src int) *Work { return broadcast(g, buf, src).start() }

func broadcast[T Element](g *Group, buf []T, src int) *collective {
	c := newCollective[T](g, callBroadcast, len(buf))
	c.root(src)
	c.begin = func() task {
		if c.hasTeam() {
			return task{team: func(t *shm.Team) error { return t.Broadcast(reduce.Bytes(buf), src) }}
		}
		if n := c.onNodes(false); n != nil {
			return c.broadcastOn(n, reduce.Bytes(buf), src)
		}
		return c.flatBroadcast(reduce.Bytes(buf), src)
	}
	return c
}

// AllGather collects in of every rank, in order of rank, into out on every rank. len(out) == Size*len(in), the same on
// all ranks. in may be this rank's block of out, and must not overlap it otherwise.
func AllGather[T Element](ctx context.Context, g *Group, out, in []T) error {
	if len(out) == g.Size()*len(in) {
		call, elem := quickMove[T](callAllGather, len(in), 0)
		if t := g.enter(ctx, call, elem); t != nil {
			return g.leave(t, t.AllGather(reduce.Bytes(out), reduce.Bytes(in)))
		}
		if done, err := g.flatly(ctx, call, elem, func(c *collective) task {
			return c.flatAllGather(reduce.Bytes(out), reduce.Bytes(in))
		}); done {
			return err
		}
	}
	return allGather(g, out, in).run(ctx)
}

// IAllGather starts an AllGather and returns at once.
func IAllGather[T Element](g *Group, out, in []T) *Work { return allGather(g, out, in).start() }

func allGather[T Element](g *Group, out, in []T) *collective {
	c := newCollective[T](g, callAllGather, len(in))
	c.wantBlocks("out", len(out), "in", len(in))
	c.begin = func() task {
		if c.hasTeam() {
			return task{team: func(t *shm.Team) error { return t.AllGather(reduce.Bytes(out), reduce.Bytes(in)) }}
		}
		if n := c.onNodes(false); n != nil {
			return c.allGatherOn(n, reduce.Bytes(out), reduce.Bytes(in))
		}
		return c.flatAllGather(reduce.Bytes(out), reduce.Bytes(in))
	}
	return c
}

// AllGatherV is AllGather with blocks of different lengths: it copies in of every rank r to out[r] on every rank.
// out[r] has as many elements as in has on rank r, else the call fails with a [MismatchError]. in may be out[Rank], and
// must not overlap out otherwise.
func AllGatherV[T Element](ctx context.Context, g *Group, out [][]T, in []T) error {
	c := newCollective[T](g, callAllGatherV, 0)
	c.wantParts("out", lengthsOf(out), "in", len(in))
	c.begin = func() task {
		copy(out[g.rank], in)
		v := partsOf(out, 1)
		return task{plan: plan.RingAllGather(g.rank, v.blocks), src: v, dst: v}
	}
	return c.run(ctx)
}
