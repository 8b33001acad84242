package comm

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/gorun/gorun/comm/internal/reduce"
)

// A program is a random sequence of calls on random groups, the same for all ranks. Group 0 is the world.
type program struct {
	groups [][]int // world ranks, in group order
	steps  []step
}

// A step is one call. What it moves follows from its number and the ranks.
type step struct {
	number int
	group  int
	kind   string
	makes  int // the group that a NewGroup makes
	n      int // elements
	root   int // or, of a shift, the distance
	typ    int
	start  bool // by an I-form that is waited for later
	shared int  // one of so many ranks has its buffers in memory of Alloc; 0: none has
}

// kinds are what a step may be, the asynchronous ones first.
var kinds = []string{
	"AllReduce", "Reduce", "Broadcast", "AllGather", "Gather", "Scatter", "ReduceScatter", "AllToAll", "AllToAllV",
	"Scan", "Barrier", "MonitoredBarrier", "shift", "NewGroup",
}

const asynchronous = 9 // of kinds

func newProgram(seed uint64, size, steps int) program {
	rng := rand.New(rand.NewPCG(seed, 0))
	p := program{groups: [][]int{rng.Perm(size)}}
	slices.Sort(p.groups[0])
	for i := range steps {
		kind := rng.IntN(len(kinds))
		s := step{
			number: i, group: rng.IntN(len(p.groups)), kind: kinds[kind], typ: rng.IntN(3),
			n: []int{0, 1, 7, 100, 9_000}[rng.IntN(5)], start: kind < asynchronous && rng.IntN(3) == 0, shared: rng.IntN(4),
		}
		parent := p.groups[s.group]
		s.root = rng.IntN(len(parent))
		if s.kind == "NewGroup" {
			s.makes = len(p.groups)
			var members []int
			for _, r := range rng.Perm(len(parent))[:1+rng.IntN(len(parent))] {
				members = append(members, parent[r])
			}
			p.groups = append(p.groups, members)
		}
		p.steps = append(p.steps, s)
	}
	return p
}

// run carries the program out on one rank and holds every result against what it must be. before is called ahead of
// every step that the rank has a part in; it may end the run.
func (p program) run(ctx context.Context, world *Group, before func(s step, g *Group) (end bool, err error)) error {
	groups := make([]*Group, len(p.groups))
	groups[0] = world
	type started struct {
		work  *Work
		check func() error
	}
	var pending []started
	for _, s := range p.steps {
		g := groups[s.group]
		if g == nil {
			continue
		}
		if end, err := before(s, g); end || err != nil {
			return err
		}
		if s.kind == "NewGroup" {
			var ranks []int
			for _, r := range p.groups[s.makes] {
				ranks = append(ranks, g.GroupRank(r))
			}
			var err error
			if groups[s.makes], err = NewGroup(ctx, g, ranks); err != nil {
				return err
			}
			continue
		}
		run := []func(context.Context, *Group, step) (*Work, func() error, error){
			perform[int64], perform[float32], perform[uint8],
		}[s.typ]
		work, check, err := run(ctx, g, s)
		switch {
		case err != nil:
			return err
		case work != nil:
			pending = append(pending, started{work, check})
		default:
			if err := check(); err != nil {
				return err
			}
		}
		for len(pending) > 4 || len(pending) > 0 && s.number == len(p.steps)-1 {
			if err := pending[0].work.Wait(ctx); err != nil {
				return err
			}
			if err := pending[0].check(); err != nil {
				return err
			}
			pending = pending[1:]
		}
	}
	for _, w := range pending {
		if err := w.work.Wait(ctx); err != nil {
			return err
		}
		if err := w.check(); err != nil {
			return err
		}
	}
	return nil
}

// A wrongResult is what no fault excuses.
type wrongResult struct{ text string }

func (w wrongResult) Error() string { return w.text }

// perform makes the call of s, or starts it, and returns how to check its result.
func perform[T int64 | float32 | uint8](ctx context.Context, g *Group, s step) (*Work, func() error, error) {
	size, me := g.Size(), g.Rank()
	const period = 11
	element := func(rank, k int) T { return T((s.number*7 + g.WorldRank(rank)*3 + k) % period) }
	input := func(rank, n int) []T { // of a group rank
		buf := make([]T, n)
		repeat(buf, period, func(k int) T { return element(rank, k) })
		return buf
	}
	sum := func(ranks, n int) []T { // of the first ranks
		total := make([]T, n)
		repeat(total, period, func(k int) (v T) {
			for r := range ranks {
				v += element(r, k)
			}
			return v
		})
		return total
	}
	all := func(n int, of func(rank int) []T) []T {
		var joined []T
		for r := range size {
			joined = append(joined, of(r)[:n]...)
		}
		return joined
	}
	block := func(of []T, i int) []T { return of[i*s.n : (i+1)*s.n] }
	buffer := func(n int) []T {
		if s.shared == 0 || (g.WorldRank(me)+s.number)%s.shared > 0 {
			return make([]T, n)
		}
		return allocated[T](g, n)
	}
	mine := func(n int) []T {
		buf := buffer(n)
		copy(buf, input(me, n))
		return buf
	}
	own := mine(s.n)
	var (
		got, want = own, slices.Clone(own)
		wait      func() error
		start     func() *Work
	)
	switch s.kind {
	case "AllReduce":
		want = sum(size, s.n)
		wait, start = func() error { return AllReduce(ctx, g, got, Sum) }, func() *Work { return IAllReduce(g, got, Sum) }
	case "Reduce":
		if me == s.root {
			want = sum(size, s.n)
		}
		wait, start = func() error { return Reduce(ctx, g, got, Sum, s.root) }, func() *Work { return IReduce(g, got, Sum, s.root) }
	case "Broadcast":
		want = input(s.root, s.n)
		wait, start = func() error { return Broadcast(ctx, g, got, s.root) }, func() *Work { return IBroadcast(g, got, s.root) }
	case "AllGather":
		got, want = buffer(size*s.n), all(s.n, func(r int) []T { return input(r, s.n) })
		wait, start = func() error { return AllGather(ctx, g, got, own) }, func() *Work { return IAllGather(g, got, own) }
	case "Gather":
		got, want = buffer(size*s.n), make([]T, size*s.n)
		if me == s.root {
			want = all(s.n, func(r int) []T { return input(r, s.n) })
		}
		wait, start = func() error { return Gather(ctx, g, got, own, s.root) }, func() *Work { return IGather(g, got, own, s.root) }
	case "Scatter":
		got, want = buffer(s.n), block(input(s.root, size*s.n), me)
		in := mine(size * s.n)
		wait, start = func() error { return Scatter(ctx, g, got, in, s.root) }, func() *Work { return IScatter(g, got, in, s.root) }
	case "ReduceScatter":
		got, want = buffer(s.n), block(sum(size, size*s.n), me)
		in := mine(size * s.n)
		wait, start = func() error { return ReduceScatter(ctx, g, got, in, Sum) }, func() *Work { return IReduceScatter(g, got, in, Sum) }
	case "AllToAll":
		got, want = buffer(size*s.n), all(s.n, func(r int) []T { return block(input(r, size*s.n), me) })
		in := mine(size * s.n)
		wait, start = func() error { return AllToAll(ctx, g, got, in) }, func() *Work { return IAllToAll(g, got, in) }
	case "AllToAllV":
		count := func(from, to int) int { return (from*3 + to + s.number) % 5 }
		var ins, outs []int
		var in []T
		want = nil
		for r := range size {
			ins, outs = append(ins, count(me, r)), append(outs, count(r, me))
			in = append(in, input(me, 10*size)[10*r:][:count(me, r)]...)
			want = append(want, input(r, 10*size)[10*me:][:count(r, me)]...)
		}
		got = buffer(len(want))
		wait, start = func() error { return AllToAllV(ctx, g, got, outs, in, ins) }, func() *Work { return IAllToAllV(g, got, outs, in, ins) }
	case "Scan":
		want = sum(me+1, s.n)
		wait = func() error { return Scan(ctx, g, got, Sum) }
	case "Barrier":
		wait = func() error { return Barrier(ctx, g) }
	case "MonitoredBarrier":
		wait = func() error { return MonitoredBarrier(ctx, g) }
	case "shift":
		from := (me + size - s.root) % size
		got, want = buffer(s.n), input(from, s.n)
		wait = func() error {
			out := ISend(g, own, (me+s.root)%size, s.number%3)
			if _, err := Recv(ctx, g, got, from, s.number%3); err != nil {
				return err
			}
			return out.Wait(ctx)
		}
	}
	check := func() error {
		if !bytes.Equal(reduce.Bytes(got), reduce.Bytes(want)) {
			return wrongResult{fmt.Sprintf("step %+v on %v: rank %d got %v, want %v", s, g, me, got, want)}
		}
		return nil
	}
	if s.start {
		return start(), check, nil
	}
	return nil, check, wait()
}
