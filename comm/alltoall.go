package comm

import (
	"context"

	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/reduce"
	"github.com/gorun/gorun/comm/internal/shm"
)

// AllToAll cuts in into Size blocks of equal length and copies block r to rank r; block r of out gets what rank r has
// sent here. len(out) == len(in), a multiple of Size, the same on all ranks. out and in must not overlap.
func AllToAll[T Element](ctx context.Context, g *Group, out, in []T) error {
	if len(out) == len(in) && len(in)%g.Size() == 0 {
		call, elem := quickMove[T](callAllToAll, len(in), 0)
		if t := g.enter(ctx, call, elem); t != nil {
			return g.leave(t, t.AllToAll(reduce.Bytes(out), reduce.Bytes(in)))
		}
		if !g.choose.TogetherAllToAll(g.Size(), len(in)/g.Size()*elem) {
			if done, err := g.flatly(ctx, call, elem, func(c *collective) task {
				return c.flatAllToAll(reduce.Bytes(out), reduce.Bytes(in))
			}); done {
				return err
			}
		}
	}
	return allToAll(g, out, in).run(ctx)
}

// IAllToAll starts an AllToAll and returns at once.
func IAllToAll[T Element](g *Group, out, in []T) *Work { return allToAll(g, out, in).start() }

func allToAll[T Element](g *Group, out, in []T) *collective {
	c := newCollective[T](g, callAllToAll, len(in))
	c.want(len(out) == len(in), "len(out) is %d: want len(in) = %d", len(out), len(in))
	c.want(len(in)%g.Size() == 0, "len(in) is %d: want a multiple of Size = %d", len(in), g.Size())
	c.begin = func() task {
		if c.hasTeam() {
			return task{team: func(t *shm.Team) error { return t.AllToAll(reduce.Bytes(out), reduce.Bytes(in)) }}
		}
		if n := c.onNodes(false); n != nil {
			return c.allToAllOn(n, reduce.Bytes(out), reduce.Bytes(in))
		}
		block := len(in) / g.Size()
		if g.choose.TogetherAllToAll(g.Size(), block*c.elem) {
			return together(g, out, in, block)
		}
		return c.flatAllToAll(reduce.Bytes(out), reduce.Bytes(in))
	}
	return c
}

// together is the task of an AllToAll of blocks of n elements that travel together.
func together[T Element](g *Group, out, in []T, n int) task {
	rank, size := g.rank, g.Size()
	room := make([]T, (size+size/2*2)*n)
	copy(room[copy(room, in[rank*n:]):], in[:rank*n])
	t := inPlace(plan.BruckAllToAll(rank, size, n), reduce.Bytes(room))
	t.end = func() {
		for i := range size {
			from := (rank - i + size) % size
			copy(out[from*n:(from+1)*n], room[i*n:])
		}
	}
	return t
}

// AllToAllV is AllToAll with blocks of different lengths: block r of in, of inCounts[r] elements, goes to rank r, and
// block r of out, of outCounts[r] elements, comes from rank r. Blocks lie end to end in order of rank. Rank r's
// outCounts[s] is rank s's inCounts[r], else the call fails with a [MismatchError]. out and in must not overlap.
func AllToAllV[T Element](ctx context.Context, g *Group, out []T, outCounts []int, in []T, inCounts []int) error {
	return allToAllV(g, out, outCounts, in, inCounts).run(ctx)
}

// IAllToAllV starts an AllToAllV and returns at once.
func IAllToAllV[T Element](g *Group, out []T, outCounts []int, in []T, inCounts []int) *Work {
	return allToAllV(g, out, outCounts, in, inCounts).start()
}

func allToAllV[T Element](g *Group, out []T, outCounts []int, in []T, inCounts []int) *collective {
	c := newCollective[T](g, callAllToAllV, 0)
	c.wantCounts("out", outCounts, len(out))
	c.wantCounts("in", inCounts, len(in))
	if c.err == nil {
		to, from := inCounts[g.rank], outCounts[g.rank]
		c.want(to == from, "rank %d sends itself %d elements and expects %d", g.rank, to, from)
	}
	send, recv := blocksOf(inCounts, 1), blocksOf(outCounts, 1)
	c.begin = func() task {
		return task{
			plan: plan.PairwiseAllToAll(g.rank, send, recv),
			src:  vector{buf: reduce.Bytes(in)}, dst: vector{buf: reduce.Bytes(out)},
		}
	}
	return c
}
