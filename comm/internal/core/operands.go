package core

import (
	"unsafe"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/hier"
	"github.com/gorun/gorun/comm/internal/pipeline"
	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/reduce"
	"github.com/gorun/gorun/comm/internal/shm"
)

// reducing is the state of a collective that combines elements. What it sends and combines are its operands: the
// caller's elements, which are scaled if the operation asks for that. Half floats that are added or multiplied may
// become float32.
type reducing struct {
	op          call.Reduction // none: the call only moves elements
	kernel      reduce.Kernel
	elemType    reduce.Type
	operandType reduce.Type

	into     []byte // where the result is to be left
	operands []byte // where the operands are combined
}

// reduces makes c a call of kind that combines n elements of type t.
func (c *Collective) reduces(g *Group, kind call.Kind, t reduce.Type, op call.Reduction, n int) {
	c.is(g, kind, t, n)
	c.elemType, c.operandType = t, t
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

// widens reports whether elements of type t that o combines travel as float32, so that they are rounded once: half
// floats that are added or multiplied. Those of two ranks are rounded once in any case, and so are those of a team,
// which combines all at once. If more is to be done with them, such as scaling, they travel as float32 in any case.
func (g *Group) widens(t reduce.Type, o reduce.Op, more, team bool) bool {
	return (more || len(g.Ranks) > 2 && !team) && reduce.Folds(t, o) != nil
}

// fold returns how a team combines the values of all ranks at once, or nil if it applies o repeatedly.
func (g *Group) fold(t reduce.Type, o reduce.Op) func(dst []byte, sources [][]byte) {
	if len(g.Ranks) == 2 {
		return nil
	}
	return reduce.Folds(t, o)
}

// widen makes the operands float32 if they travel so. That depends on who combines them, which is known when the call's
// turn has come.
func (c *Collective) widen() {
	if c.op.Code != 0 && c.g.widens(c.elemType, c.op.Kernel, c.op.Scaled || c.op.Average, c.teamOfAll() != nil) {
		c.operandType, c.elem = reduce.Float32, reduce.Float32.Size()
		c.kernel = reduce.For(reduce.Float32, c.op.Kernel)
	}
}

// isWide reports whether operands are float32 and elements are not.
func (c *Collective) isWide() bool { return c.operandType != c.elemType }

// values returns the number of values in buf.
func (c *Collective) values(buf []byte) int { return len(buf) / c.elemType.Size() / c.op.Width }

// setOperands makes the elements in buf the operands of c, which leaves its result in buf. Unless it may overwrite buf,
// it takes a copy.
func (c *Collective) setOperands(buf []byte, mayOverwrite bool) {
	c.into, c.operands = buf, c.operandsOf(buf, mayOverwrite)
}

// operandsOf returns the operands made of the elements in buf: buf itself if they are the same and it may be
// overwritten, or else a copy.
func (c *Collective) operandsOf(buf []byte, mayOverwrite bool) []byte {
	work := buf
	if c.isWide() || !mayOverwrite {
		work = c.operandMemory(buf)
	}
	c.copyOperands(work, buf)
	return work
}

// copyOperands leaves the operands made of the elements in buf in work, which may be buf if they are the same.
func (c *Collective) copyOperands(work, buf []byte) {
	if c.isWide() {
		reduce.Widen(c.elemType, reduce.View[float32](work), buf)
	} else if unsafe.SliceData(work) != unsafe.SliceData(buf) { // to the race detector, a copy to itself writes
		copy(work, buf)
	}
	if c.op.Scaled {
		reduce.Scale(c.operandType, work, c.op.Scale)
	}
}

// operandMemory returns memory for as many operands as there are elements in buf.
func (c *Collective) operandMemory(buf []byte) []byte {
	return c.g.scratch.Take(len(buf) / c.elemType.Size() * c.operandType.Size())
}

// finish leaves the result in into, made of the combined operands, if this rank gets a result.
func (c *Collective) finish(result bool) {
	if !result {
		return
	}
	if c.op.Average {
		reduce.Divide(c.operandType, c.operands, c.g.Size())
	}
	if c.op.Normalize {
		reduce.Normalize(c.operandType, c.operands)
	}
	if c.isWide() {
		reduce.Narrow(c.elemType, c.into, reduce.View[float32](c.operands))
	}
}

// folding returns how a team combines operands.
func (c *Collective) folding() shm.Reduction {
	return shm.Reduction{
		Elem: c.elem, Kernel: shm.Kernel(c.kernel), Fold: c.g.fold(c.operandType, c.op.Kernel), Copies: c.op.Own != nil,
	}
}

// reducesInStages is inStages for a call that reduces operands.
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
