package pipeline

import (
	"slices"
	"unsafe"

	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/reduce"
)

// A Vector is what the ranges of a plan refer to: one buffer, or several one after the other.
type Vector struct {
	Buf    []byte
	Base   int          // the element at which Buf starts
	Bufs   [][]byte     // instead of Buf
	Blocks []plan.Range // the ranges of Bufs, or of the blocks in Buf
	extra  []byte       // the elements after those of Buf (see plan.Plan.Extent), in memory of the pipeline
}

// At returns range r of v, in elements of elem bytes. If v has several buffers, r is in one of them.
func (v *Vector) At(r plan.Range, elem int) []byte {
	if r.Len() == 0 {
		return nil
	}
	buf, base := v.Buf, v.Base
	if len(v.Bufs) > 0 {
		i, _ := slices.BinarySearchFunc(v.Blocks, r.Lo, func(b plan.Range, lo int) int { return b.Hi - 1 - lo })
		buf, base = v.Bufs[i], v.Blocks[i].Lo
	}
	at := (r.Lo - base) * elem
	if at >= len(buf) {
		buf, at = v.extra, at-len(buf)
	}
	return buf[at:][:r.Len()*elem]
}

// is reports whether v and w are in the same memory.
func (v *Vector) is(w *Vector) bool {
	if len(v.Bufs) > 0 || len(w.Bufs) > 0 {
		return unsafe.SliceData(v.Bufs) == unsafe.SliceData(w.Bufs)
	}
	return unsafe.SliceData(v.Buf) == unsafe.SliceData(w.Buf) && v.Base == w.Base
}

// Clear makes v empty. It keeps memory for blocks.
func (v *Vector) Clear() {
	clear(v.Bufs)
	v.Buf, v.Bufs, v.Blocks = nil, v.Bufs[:0], v.Blocks[:0]
}

// SetBlocksOfBufs makes every buffer of v a block, in values of elem bytes.
func (v *Vector) SetBlocksOfBufs(elem int) {
	for _, b := range v.Bufs {
		v.AddBlock(len(b) / elem)
	}
}

// SetBlocks makes v blocks of the given lengths in buf, one after the other.
func (v *Vector) SetBlocks(buf []byte, lengths ...int) {
	v.Buf = buf
	for _, n := range lengths {
		v.AddBlock(n)
	}
}

// AddBlock adds a block of n elements after those that v has.
func (v *Vector) AddBlock(n int) {
	lo := 0
	if last := len(v.Blocks) - 1; last >= 0 {
		lo = v.Blocks[last].Hi
	}
	v.Blocks = append(v.Blocks, plan.Range{Lo: lo, Hi: lo + n})
}

// A Task is a plan and the memory that it works on.
type Task struct {
	Plan     plan.Plan
	Src, Dst Vector        // what is sent from and received into; the same for most plans
	Input    Vector        // this rank's input, if it is not in Src and Dst: steps that send or merge input read it here
	Kernel   reduce.Kernel // for steps that reduce
	forwards bool          // the plan sends from Dst, and Src has become Input
}

// sendsInput reports whether s sends from Input.
func (t *Task) sendsInput(s *plan.Step) bool {
	return t.Input.Buf != nil && (s.SendsInput || t.forwards && !s.Forwards)
}

// source returns where s sends from.
func (t *Task) source(s *plan.Step) *Vector {
	if t.sendsInput(s) {
		return &t.Input
	}
	return &t.Src
}

// operand returns where s has the operand that it combines with what arrives.
func (t *Task) operand(s *plan.Step) *Vector {
	if s.MergesInput && t.Input.Buf != nil {
		return &t.Input
	}
	return &t.Dst
}

// InPlace returns the task of running p on buf.
func InPlace(p plan.Plan, buf []byte) Task {
	v := Vector{Buf: buf}
	return Task{Plan: p, Src: v, Dst: v}
}
