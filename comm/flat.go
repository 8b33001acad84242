package comm

import (
	"context"
	"time"

	"github.com/gorun/gorun/comm/internal/endpoint"
	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/reduce"
)

// Blocking calls of ranks that share no memory take a short cut, too, where nothing stands in the way: it leaves nothing
// behind for the garbage collector.

// mostPlans is how many plans a group keeps.
const mostPlans = 64

// flatly carries out call at once, by the task that begin returns. It returns false if it has to go the long way: the group
// has a team, or may have one, or something else is under way, or wrong.
func (g *Group) flatly(ctx context.Context, call endpoint.Words, elem int, begin func(c *collective) task) (done bool, err error) {
	if !g.flat.Load() || !g.lane.Usable() || ctx.Err() != nil {
		return false, nil
	}
	seq, ok := g.turns.seize()
	if !ok {
		return false, nil
	}
	c := &g.present
	c.seq, c.call, c.elem, c.ctx, c.deadline = seq, endpoint.CallOf(call), elem, ctx, time.Now().Add(g.timeout)
	if err = g.lane.Begin(seq, c.call); err == nil {
		t := begin(c)
		err = c.execute(&t)
	}
	if err == nil {
		g.lane.End(seq, nil)
	} else {
		err = c.fail(err)
	}
	c.ctx = nil
	g.pass(seq)
	if err != nil {
		g.lane.Settle(newsTimeout)
	}
	return true, err
}

// planned is the plan of c's call, which says all that it depends on: that of last time, or what build makes.
func (c *collective) planned(build func() plan.Plan) plan.Plan {
	g := c.g
	p, ok := g.plans[c.call]
	if !ok {
		if g.plans == nil || len(g.plans) == mostPlans {
			g.plans = make(map[endpoint.Call]plan.Plan, mostPlans)
		}
		p = build()
		g.plans[c.call] = p
	}
	return p
}

func (c *collective) flatBarrier() task {
	return task{plan: c.planned(func() plan.Plan { return plan.DisseminationBarrier(c.g.rank, c.g.Size()) })}
}

func (c *collective) flatBroadcast(buf []byte, src int) task {
	return inPlace(c.planned(func() plan.Plan {
		return c.g.choose.Broadcast(c.g.rank, c.g.Size(), len(buf)/c.elem, c.elem, src)
	}), buf)
}

func (c *collective) flatAllGather(out, in []byte) task {
	copy(out[c.g.rank*len(in):], in)
	return inPlace(c.planned(func() plan.Plan {
		return c.g.choose.AllGather(c.g.rank, c.g.Size(), len(in)/c.elem, c.elem)
	}), out)
}

func (c *collective) flatAllToAll(out, in []byte) task {
	return task{
		plan: c.planned(func() plan.Plan {
			blocks := equalBlocks(c.g.Size(), len(in)/c.g.Size()/c.elem)
			return plan.PairwiseAllToAll(c.g.rank, blocks, blocks)
		}),
		src: vector{buf: in}, dst: vector{buf: out},
	}
}

// flatAllReduce leaves the reduction in buf. It is of a kind that commutes, like the next two.
func (c *collective) flatAllReduce(buf []byte, kernel reduce.Kernel) task {
	t := inPlace(c.planned(func() plan.Plan {
		return c.g.choose.AllReduce(c.g.rank, c.g.Size(), len(buf)/c.elem, c.elem, false)
	}), buf)
	t.kernel = kernel
	return t
}

func (c *collective) flatReduce(buf []byte, kernel reduce.Kernel, dst int) task {
	return c.g.towards(c.planned(func() plan.Plan {
		return c.g.choose.Reduce(c.g.rank, c.g.Size(), len(buf)/c.elem, c.elem, dst, false)
	}), buf, kernel, c.g.rank == dst)
}

func (c *collective) flatReduceScatter(out, in []byte, kernel reduce.Kernel) task {
	own := c.g.rank * len(out)
	copy(out, in[own:])
	return task{
		plan: c.planned(func() plan.Plan {
			return plan.ReduceScatter(c.g.rank, equalBlocks(c.g.Size(), len(out)/c.elem), false)
		}),
		src: vector{buf: in}, dst: vector{buf: out, base: own / c.elem},
		kernel: kernel,
	}
}

// towards is the task of p, which leaves its result in buf of one rank, which this may be. Elsewhere buf stays as it is, and
// is sent from, or combined into memory of the group's.
func (g *Group) towards(p plan.Plan, buf []byte, kernel reduce.Kernel, result bool) task {
	t := inPlace(p, buf)
	t.kernel = kernel
	if result {
		return t
	}
	switch p.Reductions() {
	case 0:
	case 1:
		work := vector{buf: g.memory(len(buf))}
		t.own, t.src, t.dst = t.dst, work, work
	default:
		t.src.buf = g.memory(len(buf))
		copy(t.src.buf, buf)
		t.dst = t.src
	}
	return t
}
