package comm

import (
	"context"

	"github.com/gorun/gorun/comm/internal/cpu"
	"github.com/gorun/gorun/comm/internal/endpoint"
	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/reduce"
	"github.com/gorun/gorun/comm/internal/shm"
)

// Barrier returns when every rank of g has called it, and all collectives that this rank has started on g have ended.
func Barrier(ctx context.Context, g *Group) error {
	if t := g.mates(); t != nil && g.enter(ctx, t, endpoint.InWords(uint8(callBarrier), 0, 0, 0, 0), 1) {
		return g.leave(t, t.Barrier())
	}
	return meeting(g.spare(), g, callBarrier).do(ctx)
}

// IBarrier starts a Barrier and returns at once.
func IBarrier(g *Group) *Work { return meeting(new(collective), g, callBarrier).start() }

// meeting makes c a collective that moves nothing: it makes sure that all ranks make the same call.
func meeting(c *collective, g *Group, kind callKind) *collective {
	c.is(g, kind, 0, 0)
	c.begin = func(c *collective) task {
		if c.hasTeam() {
			return task{team: func(_ *collective, t *shm.Team) error { return t.Barrier() }}
		}
		if c.byNodes(false) {
			return task{nodes: (*collective).barrierOn}
		}
		return task{plan: c.planned(func() plan.Plan { return plan.DisseminationBarrier(c.g.rank, c.g.Size()) })}
	}
	return c
}

// Broadcast copies buf of rank src to buf of every rank of g. buf has the same length on all ranks.
func Broadcast[T Element](ctx context.Context, g *Group, buf []T, src int) error {
	if t := g.mates(); t != nil && g.has(src) {
		if call, elem := quickMove[T](callBroadcast, len(buf), src); g.enter(ctx, t, call, elem) {
			return g.leave(t, t.Broadcast(reduce.Bytes(buf), src))
		}
	}
	return broadcast(g.spare(), g, buf, src).do(ctx)
}

// IBroadcast starts a Broadcast and returns at once.
func IBroadcast[T Element](g *Group, buf []T, src int) *Work {
	return broadcast(new(collective), g, buf, src).start()
}

func broadcast[T Element](c *collective, g *Group, buf []T, src int) *collective {
	c.is(g, callBroadcast, typeOf[T](), len(buf))
	c.root(src)
	c.out.buf = reduce.Bytes(buf)
	c.begin = (*collective).broadcastTask
	return c
}

func (c *collective) broadcastTask() task {
	buf, src := c.out.buf, int(c.call.Root)
	if c.hasTeam() {
		return task{team: func(c *collective, t *shm.Team) error { return t.Broadcast(c.out.buf, int(c.call.Root)) }}
	}
	if c.byNodes(false) {
		return task{nodes: (*collective).broadcastOn}
	}
	return inPlace(c.planned(func() plan.Plan {
		return c.g.choose.Broadcast(c.g.rank, c.g.Size(), len(buf)/c.elem, c.elem, src)
	}), buf)
}

// AllGather collects in of every rank, in order of rank, into out on every rank. len(out) == Size*len(in), the same on
// all ranks. in may be this rank's block of out, and must not overlap it otherwise.
func AllGather[T Element](ctx context.Context, g *Group, out, in []T) error {
	if t := g.mates(); t != nil && len(out) == g.Size()*len(in) {
		if call, elem := quickMove[T](callAllGather, len(in), 0); g.enter(ctx, t, call, elem) {
			return g.leave(t, t.AllGather(reduce.Bytes(out), reduce.Bytes(in)))
		}
	}
	return allGather(g.spare(), g, out, in).do(ctx)
}

// IAllGather starts an AllGather and returns at once.
func IAllGather[T Element](g *Group, out, in []T) *Work {
	return allGather(new(collective), g, out, in).start()
}

func allGather[T Element](c *collective, g *Group, out, in []T) *collective {
	c.is(g, callAllGather, typeOf[T](), len(in))
	c.wantBlocks("out", len(out), "in", len(in))
	c.out.buf, c.in.buf = reduce.Bytes(out), reduce.Bytes(in)
	c.begin = (*collective).allGatherTask
	return c
}

func (c *collective) allGatherTask() task {
	out, in := c.out.buf, c.in.buf
	if c.hasTeam() {
		return task{team: func(c *collective, t *shm.Team) error { return t.AllGather(c.out.buf, c.in.buf) }}
	}
	if c.byNodes(false) {
		return task{nodes: (*collective).allGatherOn}
	}
	copyNear(out[c.g.rank*len(in):], in)
	return inPlace(c.planned(func() plan.Plan {
		return c.g.choose.AllGather(c.g.rank, c.g.Size(), len(in)/c.elem, c.elem)
	}), out)
}

// nearLimit is up to how many bytes that are needed next there is room in the caches.
const nearLimit = 4 << 20

// copyNear copies src to dst, which is sent from next, or combined with. They may be the same memory.
func copyNear(dst, src []byte) {
	switch {
	case len(src) == 0 || &src[0] == &dst[0]:
	case len(src) <= nearLimit:
		cpu.Copy(dst[:len(src)], src)
	default:
		copy(dst, src)
	}
}

// AllGatherV is AllGather with blocks of different lengths: it copies in of every rank r to out[r] on every rank.
// out[r] has as many elements as in has on rank r, else the call fails with a [MismatchError]. in may be out[Rank], and
// must not overlap out otherwise.
func AllGatherV[T Element](ctx context.Context, g *Group, out [][]T, in []T) error {
	c := g.spare()
	c.is(g, callAllGatherV, typeOf[T](), 0)
	wantParts(c, "out", out, "in", len(in))
	setParts(&c.out, out, 1)
	c.in.buf = reduce.Bytes(in)
	c.begin = (*collective).allGatherVTask
	return c.do(ctx)
}

func (c *collective) allGatherVTask() task {
	copyNear(c.out.parts[c.g.rank], c.in.buf)
	c.g.anew = c.g.choose.AllGatherApart(c.g.anew[:0], c.g.rank, c.out.blocks, c.elem)
	return task{plan: c.g.anew, src: c.out, dst: c.out}
}
