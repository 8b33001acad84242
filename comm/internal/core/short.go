package core

import (
	"context"
	"time"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/reduce"
	"github.com/gorun/gorun/comm/internal/shm"
)

// This file is the short path of blocking calls of ranks that share memory: if possible, a call goes from the group
// directly to its team. A short call takes less time than to make a Collective of it.
//
// Each Short function returns done if it has carried the call out. Otherwise it has done nothing, and the call takes
// the long path, which also finds what is wrong with the arguments. Elements have type t. n is the number of elements
// on which all ranks have to agree. Arguments are single words: to pass a Data, whose first field is a byte, would cost
// a call 20 ns, because the processor cannot forward narrow stores to the wide loads that copy it.

// stampedBytes is the least number of bytes for which a collective that has not waited gets a time stamp at its end.
const stampedBytes = 4 << 10

// enter begins a call with t, the team of all members. It returns false if the call has to take the long path, because
// another call is under way, or something is wrong.
func (g *Group) enter(ctx context.Context, t *shm.Team, call call.Packed, elem int) bool {
	if !g.Comm.Usable() || ctx.Err() != nil || !t.Fits(elem) {
		return false
	}
	seq, ok := g.order.seize()
	if !ok {
		return false
	}
	if !g.Comm.Usable() { // it may have failed meanwhile, and t may be gone
		g.pass(seq)
		return false
	}
	c := &g.short
	c.seq, c.elem, c.ctx = seq, elem, ctx
	if g.running != c { // to compare costs less than to write
		g.running = c
	}
	call = g.history.Add(call)
	g.Comm.Collectives().BeginShort(seq, call)
	t.Begin(seq, shm.Call(call), g.history.Digest())
	return true
}

// pass ends the turn that began with seize or hold.
func (g *Group) pass(seq uint64) {
	if !g.order.release(seq) && g.order.more() {
		g.Comm.Go(g.serve)
	}
}

// leave ends the call that began with enter.
func (g *Group) leave(t *shm.Team, err error) error {
	c := &g.short
	if err == nil {
		g.Comm.Collectives().EndShort(c.seq, t.Sent, t.Received, !t.Waited && t.Sent+t.Received < stampedBytes)
	} else {
		t.Abandon()
		c.call = call.Packed(t.Call()).Call()
		err = c.fail(err)
	}
	if t.Waited {
		c.deadline = time.Time{}
	}
	g.pass(c.seq)
	if err != nil {
		g.Comm.AwaitNotified(NotifyTimeout)
		g.noteMismatch(err)
	}
	return err
}

// packed returns a call of kind that only moves n elements of type t.
func packed(kind call.Kind, t reduce.Type, n, root int) call.Packed {
	return call.Pack(kind, uint8(t), 0, root, n)
}

// ShortBarrier is Barrier.
func (g *Group) ShortBarrier(ctx context.Context) (done bool, err error) {
	team := g.TeamOfAll()
	if team == nil || !g.enter(ctx, team, packed(call.KindBarrier, 0, 0, 0), 1) {
		return false, nil
	}
	return true, g.leave(team, team.Barrier())
}

// ShortBroadcast is Broadcast.
func (g *Group) ShortBroadcast(ctx context.Context, t reduce.Type, n int, buf []byte, src int) (done bool, err error) {
	team := g.TeamOfAll()
	if team == nil || !g.Has(src) || !g.enter(ctx, team, packed(call.KindBroadcast, t, n, src), t.Size()) {
		return false, nil
	}
	return true, g.leave(team, team.Broadcast(buf, src))
}

// ShortAllGather is AllGather.
func (g *Group) ShortAllGather(ctx context.Context, t reduce.Type, n int, out, in []byte) (done bool, err error) {
	team := g.TeamOfAll()
	if team == nil || len(out) != g.Size()*len(in) || !g.enter(ctx, team, packed(call.KindAllGather, t, n, 0), t.Size()) {
		return false, nil
	}
	return true, g.leave(team, team.AllGather(out, in))
}

// ShortGather is Gather.
func (g *Group) ShortGather(ctx context.Context, t reduce.Type, n int, out, in []byte, dst int) (done bool, err error) {
	team := g.TeamOfAll()
	if team == nil || !g.Has(dst) || g.rank == dst && len(out) != g.Size()*len(in) ||
		!g.enter(ctx, team, packed(call.KindGather, t, n, dst), t.Size()) {
		return false, nil
	}
	return true, g.leave(team, team.Gather(out, in, dst))
}

// ShortScatter is Scatter.
func (g *Group) ShortScatter(ctx context.Context, t reduce.Type, n int, out, in []byte, src int) (done bool, err error) {
	team := g.TeamOfAll()
	if team == nil || !g.Has(src) || g.rank == src && len(in) != g.Size()*len(out) ||
		!g.enter(ctx, team, packed(call.KindScatter, t, n, src), t.Size()) {
		return false, nil
	}
	return true, g.leave(team, team.Scatter(out, in, src))
}

// ShortAllToAll is AllToAll.
func (g *Group) ShortAllToAll(ctx context.Context, t reduce.Type, n int, out, in []byte) (done bool, err error) {
	team := g.TeamOfAll()
	if team == nil || len(out) != len(in) || n%g.Size() != 0 || !g.enter(ctx, team, packed(call.KindAllToAll, t, n, 0), t.Size()) {
		return false, nil
	}
	return true, g.leave(team, team.AllToAll(out, in))
}

// A shortReduction is a packed call and how it reduces. Without a kernel the call takes the long path.
type shortReduction struct {
	call call.Packed
	shm.Reduction
	average bool
}

// reduction returns the call of kind on n elements of type t, if op only combines elements, or averages them.
func (g *Group) reduction(kind call.Kind, t reduce.Type, op *call.Reduction, n, root int) (q shortReduction) {
	if op == nil || !op.IsShort() || g.widens(t, op.Kernel, op.Average, true) {
		return q
	}
	q.call = call.Pack(kind, uint8(t), op.Code, root, n)
	q.Elem, q.Kernel, q.average = t.Size(), shm.Kernel(reduce.For(t, op.Kernel)), op.Average
	q.Fold = g.fold(t, op.Kernel)
	return q
}

// finish makes buf the result of q, unless there is an error. It returns err.
func (g *Group) finish(q *shortReduction, t reduce.Type, buf []byte, err error) error {
	if q.average && err == nil {
		reduce.Divide(t, buf, len(g.Ranks))
	}
	return err
}

// ShortAllReduce is AllReduce by op, which is nil if it is not one of call.Basic.
func (g *Group) ShortAllReduce(ctx context.Context, t reduce.Type, n int, buf []byte, op *call.Reduction) (done bool, err error) {
	team := g.TeamOfAll()
	if team == nil {
		return false, nil
	}
	q := g.reduction(call.KindAllReduce, t, op, n, 0)
	if q.Kernel == nil || !g.enter(ctx, team, q.call, q.Elem) {
		return false, nil
	}
	return true, g.finish(&q, t, buf, g.leave(team, team.AllReduce(buf, q.Reduction)))
}

// ShortReduce is Reduce, as ShortAllReduce.
func (g *Group) ShortReduce(ctx context.Context, t reduce.Type, n int, buf []byte, op *call.Reduction, dst int) (done bool, err error) {
	team := g.TeamOfAll()
	if team == nil || !g.Has(dst) {
		return false, nil
	}
	q := g.reduction(call.KindReduce, t, op, n, dst)
	if q.Kernel == nil || !g.enter(ctx, team, q.call, q.Elem) {
		return false, nil
	}
	q.average = q.average && g.rank == dst
	return true, g.finish(&q, t, buf, g.leave(team, team.Reduce(buf, q.Reduction, dst)))
}

// ShortReduceScatter is ReduceScatter, as ShortAllReduce.
func (g *Group) ShortReduceScatter(ctx context.Context, t reduce.Type, n int, out, in []byte, op *call.Reduction) (done bool, err error) {
	team := g.TeamOfAll()
	if team == nil || len(in) != g.Size()*len(out) {
		return false, nil
	}
	q := g.reduction(call.KindReduceScatter, t, op, n, 0)
	if q.Kernel == nil || !g.enter(ctx, team, q.call, q.Elem) {
		return false, nil
	}
	return true, g.finish(&q, t, out, g.leave(team, team.ReduceScatter(out, in, q.Reduction)))
}
