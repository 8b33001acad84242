package comm

import (
	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/reduce"
	"github.com/gorun/gorun/comm/internal/shm"
)

// reducing is what a collective that combines elements has beyond others. What it sends and combines is called its operands:
// the caller's elements, scaled if the operation asks for it, and half floats that are added or multiplied as float32.
type reducing struct {
	red    reduction
	kernel reduce.Kernel
	given  reduce.Type // of elements
	typ    reduce.Type // of operands

	into     []byte // where elements are to be left
	operands []byte // where they are combined
}

// reduces makes c a call of kind that combines n elements of type t.
func (c *collective) reduces(g *Group, kind callKind, t reduce.Type, op Op, n int) {
	c.is(g, kind, t, n)
	c.given, c.typ = t, t
	var err error
	if c.red, c.kernel, err = resolve(kind, op, t, n); err != nil {
		c.refuse(err)
		return
	}
	c.elem *= c.red.width
	c.call.Reduce, c.call.Detail = c.red.code, c.red.detail()
}

// widens says whether elements of type t that o combines travel as float32, to be rounded once: half floats that are added or
// multiplied. Those of two ranks, or of mates, which combine all at once, are rounded once in any case, unless there is more to
// do than that.
func (g *Group) widens(t reduce.Type, o reduce.Op, more, mates bool) bool {
	return (more || len(g.ranks) > 2 && !mates) && reduce.Folds(t, o) != nil
}

// fold is how mates combine values of type t all at once, unless that is o again and again.
func (g *Group) fold(t reduce.Type, o reduce.Op) func(dst []byte, sources [][]byte) {
	if len(g.ranks) == 2 {
		return nil
	}
	return reduce.Folds(t, o)
}

// widen makes operands float32 where they are to be that, now that it is known who combines them.
func (c *collective) widen() {
	if c.g.widens(c.given, c.red.kernel, c.red.scaled || c.red.average, c.hasTeam()) {
		c.typ, c.elem = reduce.Float32, reduce.Float32.Size()
		c.kernel = reduce.For(reduce.Float32, c.red.kernel)
	}
}

// wide says whether operands are float32 and elements are not.
func (c *collective) wide() bool { return c.typ != c.given }

// values is how many values the elements in buf are.
func (c *collective) values(buf []byte) int { return len(buf) / c.given.Size() / c.red.width }

// operandsOf returns the operands in buf: buf itself if they are the same and it may be overwritten, else a copy.
func (c *collective) operandsOf(buf []byte, mayOverwrite bool) []byte {
	work := buf
	switch {
	case c.wide():
		work = c.roomFor(buf)
		reduce.Widen(c.given, reduce.View[float32](work), buf)
	case !mayOverwrite:
		work = c.roomFor(buf)
		copy(work, buf)
	}
	if c.red.scaled {
		reduce.Scale(c.typ, work, c.red.scale)
	}
	return work
}

// roomFor is memory for as many operands as there are elements in buf.
func (c *collective) roomFor(buf []byte) []byte {
	return c.g.memory(len(buf) / c.given.Size() * c.typ.Size())
}

// finish leaves in into the elements that the operands, combined, mean.
func (c *collective) finish() {
	if c.red.average {
		reduce.Divide(c.typ, c.operands, c.g.Size())
	}
	if c.red.normalize {
		reduce.Normalize(c.typ, c.operands)
	}
	if c.wide() {
		reduce.Narrow(c.given, c.into, reduce.View[float32](c.operands))
	}
}

// inPlace lets c run p on buf, in which the result is then left if this rank is to have one.
func (c *collective) inPlace(p plan.Plan, buf []byte, result bool) task {
	c.into, c.operands = buf, c.operandsOf(buf, result)
	t := inPlace(p, c.operands)
	t.kernel = c.kernel
	if result {
		t.end = (*collective).finish
	}
	return t
}

// towards lets c run p, which leaves the result in buf of one rank, which this may be. Elsewhere buf stays as it is, and is sent
// from, or combined into memory of the group's.
func (c *collective) towards(p plan.Plan, buf []byte, result bool) task {
	if result || c.wide() || c.red.scaled || p.Reductions() > 1 {
		return c.inPlace(p, buf, result)
	}
	t := inPlace(p, buf)
	t.kernel = c.kernel
	if p.Reductions() == 1 {
		work := vector{buf: c.g.memory(len(buf))}
		t.own, t.src, t.dst = t.dst, work, work
	}
	return t
}

// asTeam lets c run part on the operands in buf, in which the result is then left if this rank is to have one.
func (c *collective) asTeam(buf []byte, result bool, part func(c *collective, t *shm.Team) error) task {
	c.into, c.operands = buf, c.operandsOf(buf, result || !c.red.scaled) // a team leaves it as it is otherwise
	t := task{team: part}
	if result {
		t.end = (*collective).finish
	}
	return t
}

// inStages lets c run stages on the operands in buf, in which the result is then left if this rank is to have one.
func (c *collective) inStages(buf []byte, result bool, stages func(c *collective, n *nodes) error) task {
	c.into, c.operands = buf, c.operandsOf(buf, result)
	t := task{nodes: stages}
	if result {
		t.end = (*collective).finish
	}
	return t
}

func (c *collective) folding() shm.Reduction {
	return shm.Reduction{
		Elem: c.elem, Kernel: shm.Kernel(c.kernel), Fold: c.g.fold(c.typ, c.red.kernel), Copies: c.red.own != nil,
	}
}

// everywhere is the task of leaving the reduction of buf in it on every rank.
func (c *collective) everywhere(buf []byte) task {
	if c.hasTeam() {
		return c.asTeam(buf, true, func(c *collective, t *shm.Team) error { return t.AllReduce(c.operands, c.folding()) })
	}
	if c.byNodes(c.red.ordered()) {
		return c.inStages(buf, true, (*collective).allReduceOn)
	}
	return c.inPlace(c.planned(func() plan.Plan {
		return c.g.choose.AllReduce(c.g.rank, c.g.Size(), c.values(buf), c.elem, c.red.ordered())
	}), buf, true)
}

// scattered is the task of leaving in out this rank's block of the reduction of in, which has a block for every rank: parts, or
// equal ones end to end.
func (c *collective) scattered() task {
	for len(c.in.blocks) < c.g.Size() {
		c.in.append(c.values(c.out.buf))
	}
	src := c.in
	src.buf = c.operandsOf(src.buf, !c.red.scaled) // not overwritten
	for i, part := range src.parts {
		src.parts[i] = c.operandsOf(part, !c.red.scaled)
	}
	own := src.blocks[c.g.rank]
	c.leaveIn(c.out.buf)
	copyNear(c.operands, src.at(own, c.elem))
	c.g.anew = plan.ReduceScatter(c.g.anew[:0], c.g.rank, src.blocks, c.red.ordered())
	return task{
		plan: c.g.anew,
		src:  src, dst: vector{buf: c.operands, base: own.Lo},
		kernel: c.kernel,
		end:    (*collective).finish,
	}
}

// leaveIn makes out the result, with work for its operands.
func (c *collective) leaveIn(out []byte) {
	c.into, c.operands = out, out
	if c.wide() {
		c.operands = c.roomFor(out)
	}
}

// teamScattered is scattered, of equal blocks, as a team.
func (c *collective) teamScattered() task {
	c.leaveIn(c.out.buf)
	c.in.buf = c.operandsOf(c.in.buf, !c.red.scaled)
	return task{
		team: func(c *collective, t *shm.Team) error { return t.ReduceScatter(c.operands, c.in.buf, c.folding()) },
		end:  (*collective).finish,
	}
}
