package core

import (
	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/hier"
	"github.com/gorun/gorun/comm/internal/pipeline"
	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/reduce"
	"github.com/gorun/gorun/comm/internal/shm"
)

// reducing is what a collective that combines elements has beyond others. What it sends and combines is called its operands:
// the caller's elements, scaled if the operation asks for it, and half floats that are added or multiplied as float32.
type reducing struct {
	op      call.Reduction // none: c only moves elements
	kernel  reduce.Kernel
	given   reduce.Type // of elements
	operand reduce.Type // of operands

	into     []byte // where elements are to be left
	operands []byte // where they are combined
}

// reduces makes c a call of kind that combines n elements of type t.
func (c *Collective) reduces(g *Group, kind call.Kind, t reduce.Type, op call.Reduction, n int) {
	c.is(g, kind, t, n)
	c.given, c.operand = t, t
	c.op = op
	var err error
	if c.kernel, err = op.Resolve(kind, t, n); err != nil {
		c.op = call.Reduction{}
		c.refuse(err)
		return
	}
	c.elem *= op.Width
	c.call.Reduce, c.call.Detail = op.Code, op.Detail()
}

// widens reports whether elements of type t that o combines travel as float32, to be rounded once: half floats that are added or
// multiplied. Those of two ranks, or of a team, which combines all at once, are rounded once in any case, unless there is more to
// do than that.
func (g *Group) widens(t reduce.Type, o reduce.Op, more, team bool) bool {
	return (more || len(g.Ranks) > 2 && !team) && reduce.Folds(t, o) != nil
}

// fold returns how a team combines the values of all ranks at once, or nil if it applies o again and again.
func (g *Group) fold(t reduce.Type, o reduce.Op) func(dst []byte, sources [][]byte) {
	if len(g.Ranks) == 2 {
		return nil
	}
	return reduce.Folds(t, o)
}

// widen makes the operands float32 if they travel so. That depends on who combines them, which is known only now.
func (c *Collective) widen() {
	if c.op.Code != 0 && c.g.widens(c.given, c.op.Kernel, c.op.Scaled || c.op.Average, c.teamOfAll() != nil) {
		c.operand, c.elem = reduce.Float32, reduce.Float32.Size()
		c.kernel = reduce.For(reduce.Float32, c.op.Kernel)
	}
}

// isWide reports whether operands are float32 and elements are not.
func (c *Collective) isWide() bool { return c.operand != c.given }

// values is how many values the elements in buf are.
func (c *Collective) values(buf []byte) int { return len(buf) / c.given.Size() / c.op.Width }

// combine makes the operands in buf those of c, which leaves its result in buf. It may overwrite buf, or takes a copy.
func (c *Collective) combine(buf []byte, mayOverwrite bool) {
	c.into, c.operands = buf, c.operandsOf(buf, mayOverwrite)
}

// operandsOf returns the operands in buf: buf itself if they are the same and it may be overwritten, else a copy.
func (c *Collective) operandsOf(buf []byte, mayOverwrite bool) []byte {
	work := buf
	switch {
	case c.isWide():
		work = c.roomFor(buf)
		reduce.Widen(c.given, reduce.View[float32](work), buf)
	case !mayOverwrite:
		work = c.roomFor(buf)
		copy(work, buf)
	}
	if c.op.Scaled {
		reduce.Scale(c.operand, work, c.op.Scale)
	}
	return work
}

// roomFor is memory for as many operands as there are elements in buf.
func (c *Collective) roomFor(buf []byte) []byte {
	return c.g.memory(len(buf) / c.given.Size() * c.operand.Size())
}

// finish leaves in into the elements that the operands, combined, mean, if this rank is to have a result.
func (c *Collective) finish(result bool) {
	if !result {
		return
	}
	if c.op.Average {
		reduce.Divide(c.operand, c.operands, c.g.Size())
	}
	if c.op.Normalize {
		reduce.Normalize(c.operand, c.operands)
	}
	if c.isWide() {
		reduce.Narrow(c.given, c.into, reduce.View[float32](c.operands))
	}
}

// folding is how a team combines operands.
func (c *Collective) folding() shm.Reduction {
	return shm.Reduction{
		Elem: c.elem, Kernel: shm.Kernel(c.kernel), Fold: c.g.fold(c.operand, c.op.Kernel), Copies: c.op.Own != nil,
	}
}

// reducesInStages is inStages of a call that reduces operands.
func (c *Collective) reducesInStages() *hier.Call {
	h := c.inStages(c.op.Ordered())
	if h != nil {
		h.Kernel, h.Fold, h.Ordered = c.kernel, c.folding(), c.op.Ordered()
	}
	return h
}

// exchangeOperands runs p on the operands.
func (c *Collective) exchangeOperands(p plan.Plan) error {
	t := pipeline.InPlace(p, c.operands)
	t.Kernel = c.kernel
	return c.exchange(&t)
}
