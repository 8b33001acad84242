package pipeline

import (
	"slices"
	"unsafe"

	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/reduce"
)

// A Vector is what a plan's ranges are ranges of: one buffer, or several end to end.
type Vector struct {
	Buf    []byte
	Base   int          // the element at which Buf starts
	Parts  [][]byte     // instead of Buf
	Blocks []plan.Range // of Parts, or of the blocks that Buf consists of
}

// At is range r of v, in elements of elem bytes. Where v has several buffers, r lies in one of them.
func (v *Vector) At(r plan.Range, elem int) []byte {
	buf, base := v.Buf, v.Base
	if len(v.Parts) > 0 && r.Len() > 0 {
		i, _ := slices.BinarySearchFunc(v.Blocks, r.Lo, func(b plan.Range, lo int) int { return b.Hi - 1 - lo })
		buf, base = v.Parts[i], v.Blocks[i].Lo
	}
	if r.Len() == 0 {
		return nil
	}
	return buf[(r.Lo-base)*elem : (r.Hi-base)*elem]
}

// is reports whether v and w are the same memory.
func (v *Vector) is(w *Vector) bool {
	if len(v.Parts) > 0 || len(w.Parts) > 0 {
		return unsafe.SliceData(v.Parts) == unsafe.SliceData(w.Parts)
	}
	return unsafe.SliceData(v.Buf) == unsafe.SliceData(w.Buf) && v.Base == w.Base
}

// Emptied is an empty vector that uses v's lists again.
func (v *Vector) Emptied() Vector {
	clear(v.Parts)
	return Vector{Parts: v.Parts[:0], Blocks: v.Blocks[:0]}
}

// CutParts makes every part of v a block, in values of elem bytes.
func (v *Vector) CutParts(elem int) {
	for _, p := range v.Parts {
		v.AddBlock(len(p) / elem)
	}
}

// SetBlocks makes v blocks of the given lengths in buf, end to end.
func (v *Vector) SetBlocks(buf []byte, lengths ...int) {
	v.Buf = buf
	for _, n := range lengths {
		v.AddBlock(n)
	}
}

// AddBlock adds a block of n behind those that v has.
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
	Own      Vector        // what is combined with what comes, if that is not Dst
	Kernel   reduce.Kernel // for steps that reduce
}

// InPlace is the task of running p on buf.
func InPlace(p plan.Plan, buf []byte) Task {
	v := Vector{Buf: buf}
	return Task{Plan: p, Src: v, Dst: v}
}
