package core

import (
	"unsafe"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/reduce"
	"github.com/gorun/gorun/comm/internal/shm"
)

// reducing is the state of a collective that combines elements. What it sends and combines are its operands: the
// caller's elements, which are scaled if the operation asks for that. Half floats that are added or multiplied may
// become float32.
type reducing struct {
	op          *call.Reduction // nil: the call only moves elements
	kernel      reduce.Kernel
	elemType    reduce.Type
	operandType reduce.Type

	into     []byte // where the result is to be left
	operands []byte // where the operands are combined
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

// widen makes the operands float32 if they travel so. That depends on whether a team of all ranks combines them.
func (c *Collective) widen(team bool) {
	if c.op != nil && c.g.widens(c.elemType, c.op.Kernel, c.op.Scaled || c.op.Average, team) {
		c.operandType, c.elem = reduce.Float32, reduce.Float32.Size()
		c.kernel = reduce.For(reduce.Float32, c.op.Kernel)
	}
}

// isWide reports whether operands are float32 and elements are not.
func (c *Collective) isWide() bool { return c.operandType != c.elemType }

// values returns the number of values in buf.
func (c *Collective) values(buf []byte) int { return len(buf) / c.elemType.Size() / c.op.Width }

// setOperands makes the elements in buf, or those apart from it, the operands of c, which leaves its result in buf.
// Unless it may overwrite buf, it takes a copy.
func (c *Collective) setOperands(buf []byte, mayOverwrite bool) {
	c.into, c.operands = buf, buf
	if apart := c.in.Buf; apart != nil {
		if c.isWide() {
			c.operands = c.operandMemory(buf)
		}
		c.copyOperands(c.operands, apart)
		return
	}
	if !mayOverwrite || c.op.Scaled || c.isWide() {
		c.operands = c.operandsOf(buf, mayOverwrite)
	}
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

// makeOperands makes the operands of c, or for a ReduceScatter memory for those of its result.
func (c *Collective) makeOperands() {
	switch c.kind() {
	case call.KindAllReduceCoalesced:
		c.setOperands(c.joinedBuffers(), true)
	case call.KindReduceScatter, call.KindReduceScatterV:
		c.setResult(c.out.Buf)
	case call.KindReduce: // other ranks than the root only read it
		c.setOperands(c.out.Buf, c.hasResult() || !c.op.Scaled)
	default:
		c.setOperands(c.out.Buf, c.hasResult())
	}
}

// makeListed makes the elements in each buffer of a ReduceScatterV operands.
func (c *Collective) makeListed() {
	for i, buf := range c.in.Bufs {
		c.in.Bufs[i] = c.operandsOf(buf, !c.op.Scaled) // not overwritten
	}
}

// hasResult reports whether this rank gets a result of c, a reduction.
func (c *Collective) hasResult() bool {
	switch c.kind() {
	case call.KindReduce:
		return c.g.rank == c.root()
	case call.KindExScan:
		return c.g.rank > 0
	default:
		return true
	}
}

// finish leaves the result, made of the combined operands, where the caller wants it, if this rank gets one and there
// is no error. It returns err.
func (c *Collective) finish(err error) error {
	if err != nil || !c.hasResult() {
		return err
	}
	if c.op.Average || c.op.Normalize || c.isWide() {
		c.finishOperands()
	}
	if len(c.out.Bufs) > 1 {
		rest := c.into
		for _, buf := range c.out.Bufs {
			rest = rest[copy(buf, rest):]
		}
	}
	return nil
}

func (c *Collective) finishOperands() {
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

// finishBlock is finish for a call whose result is block, a part of the operands.
func (c *Collective) finishBlock(block []byte, err error) error {
	c.into, c.operands = c.out.Buf, block
	if err == nil && !c.isWide() {
		c.operands = c.into[:copy(c.into, block)]
	}
	return c.finish(err)
}

// setResult makes out the result, with memory for its operands.
func (c *Collective) setResult(out []byte) {
	c.into, c.operands = out, out
	if c.isWide() {
		c.operands = c.operandMemory(out)
	}
}

// joinedBuffers returns the elements of all buffers of c, an AllReduceCoalesced, one after the other.
func (c *Collective) joinedBuffers() []byte {
	if len(c.out.Bufs) == 1 {
		return c.out.Bufs[0]
	}
	joined := c.g.scratch.Take(c.out.Blocks[len(c.out.Blocks)-1].Hi * c.elemType.Size())
	rest := joined
	for _, buf := range c.out.Bufs {
		rest = rest[copy(rest, buf):]
	}
	return joined
}

// folding returns how a team combines operands.
func (c *Collective) folding() shm.Reduction {
	return shm.Reduction{
		Elem: c.elem, Kernel: shm.Kernel(c.kernel), Fold: c.g.fold(c.operandType, c.op.Kernel), Copies: c.op.Own != nil,
	}
}
