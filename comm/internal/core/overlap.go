package core

import (
	"cmp"
	"errors"
	"fmt"
	"unsafe"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/reduce"
)

// checkOverlap returns an error if what a call reads and what it writes overlap. Only a buffer may be both, where the
// same elements go in and come out: in a reduction all of them, and otherwise this rank's block of the whole.
func (a *Args) checkOverlap(g *Group, b *Blocks) error {
	elem, root := a.Type.Size(), g.rank == a.Root
	switch a.Kind {
	case call.KindAllGather, call.KindGather:
		return ownBlock(g, "in", a.In, "out", a.Out)
	case call.KindReduceScatter, call.KindScatter:
		return ownBlock(g, "out", a.Out, "in", a.In)
	case call.KindAllToAll, call.KindAllToAllV:
		if overlap(a.In, a.Out) {
			return errors.New("in and out overlap")
		}
		if b != nil {
			return listsApart(b, elem)
		}
	case call.KindAllGatherV:
		return cmp.Or(ownBuffer(g, "in", a.In, "out", b.Outs, elem), allApart("out", b.Outs, elem))
	case call.KindReduceScatterV:
		return ownBuffer(g, "out", a.Out, "in", b.Ins, elem)
	case call.KindGatherV:
		if root {
			return cmp.Or(ownBuffer(g, "in", a.In, "out", b.Outs, elem), allApart("out", b.Outs, elem))
		}
	case call.KindScatterV:
		if root {
			return ownBuffer(g, "out", a.Out, "in", b.Ins, elem)
		}
	case call.KindAllReduceCoalesced:
		return allApart("bufs", b.Outs, elem)
	default:
		if a.Apart && overlap(a.In, a.Out) && &a.In[0] != &a.Out[0] {
			return errors.New("in and out overlap: want the same buffer, or another one")
		}
	}
	return nil
}

// ownBlock checks that block, which has a name, is this rank's block of whole, or apart from it.
func ownBlock(g *Group, name string, block []byte, of string, whole []byte) error {
	if overlap(block, whole) && &block[0] != &whole[g.rank*len(block)] {
		return fmt.Errorf("in and out overlap: want %s to be this rank's block of %s, or apart from it", name, of)
	}
	return nil
}

// ownBuffer checks that block is this rank's buffer of a list, or apart from all of them.
func ownBuffer(g *Group, name string, block []byte, of string, list reduce.Buffers, elem int) error {
	for i := range list.Len() {
		if buf := list.Bytes(i, elem); overlap(block, buf) && (i != g.rank || &block[0] != &buf[0]) {
			return fmt.Errorf("%s and %s[%d] overlap: want %s to be %s[Rank], or apart from all of %s", name, of, i, name, of, of)
		}
	}
	return nil
}

// listsApart checks that no buffer of out overlaps another one, or one of in.
func listsApart(b *Blocks, elem int) error {
	for i := range b.Outs.Len() {
		for j := range b.Ins.Len() {
			if overlap(b.Outs.Bytes(i, elem), b.Ins.Bytes(j, elem)) {
				return fmt.Errorf("in[%d] and out[%d] overlap", j, i)
			}
		}
	}
	return allApart("out", b.Outs, elem)
}

// allApart checks that no buffer of a list overlaps another one. As a rule they are in the order of their addresses.
func allApart(name string, list reduce.Buffers, elem int) error {
	end := uintptr(0) // of those before
	for i := range list.Len() {
		buf := list.Bytes(i, elem)
		if len(buf) == 0 {
			continue
		}
		from := uintptr(unsafe.Pointer(&buf[0]))
		for j := 0; from < end && j < i; j++ {
			if overlap(buf, list.Bytes(j, elem)) {
				return fmt.Errorf("%s[%d] and %s[%d] overlap", name, j, name, i)
			}
		}
		end = max(end, from+uintptr(len(buf)))
	}
	return nil
}

// overlap reports whether a byte is in both buffers.
func overlap(x, y []byte) bool {
	if len(x) == 0 || len(y) == 0 {
		return false
	}
	from, to := uintptr(unsafe.Pointer(&x[0])), uintptr(unsafe.Pointer(&y[0]))
	return from < to+uintptr(len(y)) && to < from+uintptr(len(x))
}
