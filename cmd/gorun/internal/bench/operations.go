package bench

import (
	"errors"

	"github.com/gorun/gorun/comm"
)

// commOps are the reductions of comm.
var commOps = map[string]comm.Op{"sum": comm.Sum, "prod": comm.Prod, "min": comm.Min, "max": comm.Max, "avg": comm.Avg}

// call returns the experiment's operation with count elements, or with blocks of count elements.
func (t *typed[T]) call(count int, inPlace bool) *call {
	switch {
	case t.e.blocks:
		return t.blockCall(count, inPlace)
	case t.e.in:
		return t.wholeCall(t.a[:count])
	default:
		return t.pairCall(t.a[:count], t.b[:count])
	}
}

// wholeCall is for operations with a single buffer.
func (t *typed[T]) wholeCall(buf []T) *call {
	ctx, g, op, root := t.ctx, t.g, commOps[t.e.op], t.e.root
	want := span[T]{buf: buf, numbers: t.result}
	switch t.e.name {
	case allReduce:
		return t.newCall(buf, []span[T]{want}, func() error { return comm.AllReduce(ctx, g, buf, op) })
	case reduce:
		if g.Rank() != root { // where it keeps what it has
			want.numbers = t.given
		}
		return t.newCall(buf, []span[T]{want}, func() error { return comm.Reduce(ctx, g, buf, op, root) })
	default: // broadcast
		want.numbers = t.numbers(root)
		return t.newCall(buf, []span[T]{want}, func() error { return comm.Broadcast(ctx, g, buf, root) })
	}
}

// blockCall is for operations whose buffers have a block for each rank.
func (t *typed[T]) blockCall(count int, inPlace bool) *call {
	ctx, g, op, root := t.ctx, t.g, commOps[t.e.op], t.e.root
	me, size := g.Rank(), g.Size()
	all, mine := t.a[:size*count], t.b[:count]
	if inPlace {
		mine = all[me*count:][:count]
	}
	from := func(buf []T) (spans []span[T]) { // a block of each rank, beginning with its element 0
		for rank := range size {
			spans = append(spans, span[T]{buf: buf[rank*count:][:count], numbers: t.numbers(rank)})
		}
		return spans
	}
	switch t.e.name {
	case allGather:
		return t.newCall(mine, from(all), func() error { return comm.AllGather(ctx, g, all, mine) })
	case reduceScatter:
		want := span[T]{buf: mine, numbers: t.result, first: me * count}
		return t.newCall(all, []span[T]{want}, func() error { return comm.ReduceScatter(ctx, g, mine, all, op) })
	case gather:
		var wants []span[T]
		if me == root {
			wants = from(all)
		}
		return t.newCall(mine, wants, func() error { return comm.Gather(ctx, g, all, mine, root) })
	case scatter:
		var given []T
		if me == root {
			given = all
		}
		want := span[T]{buf: mine, numbers: t.numbers(root), first: me * count}
		return t.newCall(given, []span[T]{want}, func() error { return comm.Scatter(ctx, g, mine, all, root) })
	default: // allToAll
		out := t.b[:size*count]
		wants := from(out)
		for i := range wants {
			wants[i].first = me * count
		}
		return t.newCall(all, wants, func() error { return comm.AllToAll(ctx, g, out, all) })
	}
}

// pairCall is for operations between pairs of ranks, and for the one that moves nothing.
func (t *typed[T]) pairCall(in, out []T) *call {
	ctx, g, me, size := t.ctx, t.g, t.g.Rank(), t.g.Size()
	switch {
	case t.e.name == barrier:
		return t.newCall(nil, nil, func() error { return comm.Barrier(ctx, g) })
	case t.e.name == sendRecv:
		before, next := (me+size-1)%size, (me+1)%size
		want := span[T]{buf: out, numbers: t.numbers(before)}
		return t.newCall(in, []span[T]{want}, func() error {
			sent := comm.ISend(g, in, next)
			_, err := comm.Recv(ctx, g, out, before)
			return errors.Join(err, sent.Wait(ctx))
		})
	case me > 1: // of pingPong only a bystander
		return t.newCall(nil, nil, func() error { return nil })
	}
	other := 1 - me
	send := func() error { return comm.Send(ctx, g, in, other) }
	receive := func() error { _, err := comm.Recv(ctx, g, out, other); return err }
	first, second := send, receive
	if me == 1 {
		first, second = receive, send
	}
	want := span[T]{buf: out, numbers: t.numbers(other)}
	return t.newCall(in, []span[T]{want}, func() error {
		if err := first(); err != nil {
			return err
		}
		return second()
	})
}
