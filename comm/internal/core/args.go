package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/pipeline"
	"github.com/gorun/gorun/comm/internal/reduce"
)

// Args are the arguments of a collective. Which of them matter depends on Kind.
type Args struct {
	Kind  call.Kind
	Type  reduce.Type     // of elements
	Count int             // elements of the caller's buffer; if it passes two, of the shorter one
	Root  int             // the rank from which, or to which, elements go
	Op    *call.Reduction // how elements are combined; nil: they are only moved

	Out, In []byte // where the result is to be left, and what is read; a call in place has only Out
	Apart   bool   // of a reduction that is in place otherwise: In has the operands, and keeps them

	kernel reduce.Kernel // of Op
}

// Blocks are more arguments of a collective that has a block of any length for every rank, or several buffers.
type Blocks struct {
	Outs, Ins           reduce.Buffers // blocks in buffers of their own
	OutCounts, InCounts []int          // elements of blocks that are one after the other in Out and In
}

// ErrNoGroup is wrapped by the error of calls on NoGroup.
var ErrNoGroup = errors.New("the group is nil, as it is on ranks that are none of its members")

// check returns what is wrong with the arguments of a call on g.
func (a *Args) check(g *Group, b *Blocks) (err error) {
	if g == NoGroup {
		return ErrNoGroup
	}
	if a.Op != nil {
		if a.kernel, err = a.Op.Resolve(a.Kind, a.Type, a.Count); err != nil {
			return err
		}
	}
	if a.Kind.HasRoot() && !g.Has(a.Root) {
		return noRank(g, a.Root)
	}
	switch me := g.rank; a.Kind {
	case call.KindAllReduce, call.KindReduce, call.KindScan, call.KindExScan:
		if a.Apart {
			err = a.setApart(me)
		}
	case call.KindAllGather:
		err = a.wantBlocks(g, "out", a.Out, "in")
	case call.KindReduceScatter:
		err = a.wantBlocks(g, "in", a.In, "out")
	case call.KindGather:
		if me == a.Root {
			err = a.wantBlocks(g, "out", a.Out, "in")
			break
		}
		a.Out = nil // whatever the caller has passed, it is not for this rank
	case call.KindScatter:
		if me == a.Root {
			err = a.wantBlocks(g, "in", a.In, "out")
			break
		}
		a.In = nil
	case call.KindAllGatherV:
		err = a.wantBufs(g, "out", b.Outs, "in")
	case call.KindReduceScatterV:
		err = cmp.Or(a.wantBufs(g, "in", b.Ins, "out"), a.wantValues("in", b.Ins))
	case call.KindGatherV:
		if me == a.Root {
			err = a.wantBufs(g, "out", b.Outs, "in")
		}
	case call.KindScatterV:
		if me == a.Root {
			err = a.wantBufs(g, "in", b.Ins, "out")
		}
	case call.KindAllToAll:
		err = a.wantEqualBlocks(g)
	case call.KindAllToAllV:
		err = a.wantBlocksOfCounts(g, b)
	case call.KindAllReduceCoalesced:
		if b.Outs.Len() == 0 {
			return errors.New("no buffers given: want at least one")
		}
		err = a.wantValues("bufs", b.Outs)
	default: // any length is good
	}
	if err == nil && g.World.CheckBuffers {
		err = a.touch(g, b)
	}
	if err == nil && (a.In != nil || b != nil) { // or there is one buffer
		err = a.checkOverlap(g, b)
	}
	return err
}

// setApart checks the buffers of a reduction whose operands are apart from its result. A rank that gets no result works
// in place on its operands, which then do not change.
func (a *Args) setApart(me int) error {
	switch {
	case a.Kind == call.KindReduce && me != a.Root, a.Kind == call.KindExScan && me == 0:
		a.Out, a.In = a.In, nil
	case len(a.Out) != len(a.In):
		return fmt.Errorf("len(out) is %d: want len(in) = %d", len(a.Out)/a.Type.Size(), a.Count)
	}
	return nil
}

// operands returns what a reduction reads.
func (a *Args) operands() []byte {
	if a.In != nil {
		return a.In
	}
	return a.Out
}

func noRank(g *Group, rank int) error {
	return fmt.Errorf("no rank %d in a group of %d", rank, g.Size())
}

// wantBlocks checks that whole holds a block of Count elements for every rank.
func (a *Args) wantBlocks(g *Group, name string, whole []byte, block string) error {
	elem, size := a.Type.Size(), g.Size()
	if len(whole) != size*a.Count*elem {
		return fmt.Errorf("len(%s) is %d: want Size × len(%s) = %d × %d", name, len(whole)/elem, block, size, a.Count)
	}
	return nil
}

// wantEqualBlocks checks that Out and In each hold equally long blocks for all ranks.
func (a *Args) wantEqualBlocks(g *Group) error {
	switch size := g.Size(); {
	case len(a.Out) != len(a.In):
		return fmt.Errorf("len(out) is %d: want len(in) = %d", len(a.Out)/a.Type.Size(), a.Count)
	case a.Count%size != 0:
		return fmt.Errorf("len(in) is %d: want a multiple of Size = %d", a.Count, size)
	}
	return nil
}

// wantBufs checks that there is a buffer for every rank, and that this rank's is as long as block, of Count elements.
func (a *Args) wantBufs(g *Group, name string, bufs reduce.Buffers, block string) error {
	if size := g.Size(); bufs.Len() != size {
		return fmt.Errorf("len(%s) is %d: want Size = %d", name, bufs.Len(), size)
	}
	if got := bufs.Count(g.rank); got != a.Count {
		return fmt.Errorf("len(%s[%d]) is %d: want len(%s) = %d", name, g.rank, got, block, a.Count)
	}
	return nil
}

// wantValues checks that all buffers hold whole values of the operation.
func (a *Args) wantValues(name string, bufs reduce.Buffers) error {
	for i := range bufs.Len() {
		if n := bufs.Count(i); n%a.Op.Width != 0 {
			return fmt.Errorf("%v: len(%s[%d]) is %d: want a multiple of %d", a.Op, name, i, n, a.Op.Width)
		}
	}
	return nil
}

// wantBlocksOfCounts checks that Out and In are blocks of the given counts, one for every rank, and that this rank
// receives as many elements from itself as it sends.
func (a *Args) wantBlocksOfCounts(g *Group, b *Blocks) error {
	if b.listed(a) {
		return wantLists(g, b)
	}
	elem := a.Type.Size()
	if err := cmp.Or(wantCounts(g, "out", b.OutCounts, len(a.Out)/elem), wantCounts(g, "in", b.InCounts, len(a.In)/elem)); err != nil {
		return err
	}
	if in, out := b.InCounts[g.rank], b.OutCounts[g.rank]; in != out {
		return fmt.Errorf("rank %d sends itself %d elements and expects %d", g.rank, in, out)
	}
	return nil
}

// listed reports whether the blocks of an AllToAllV are in lists.
func (b *Blocks) listed(a *Args) bool {
	return b.OutCounts == nil && b.InCounts == nil && len(a.Out)+len(a.In) == 0
}

// wantLists checks that there is a buffer to send and one to receive for every rank, equally long ones for this rank itself.
func wantLists(g *Group, b *Blocks) error {
	switch size := g.Size(); {
	case b.Outs.Len() != size:
		return fmt.Errorf("len(out) is %d: want Size = %d", b.Outs.Len(), size)
	case b.Ins.Len() != size:
		return fmt.Errorf("len(in) is %d: want Size = %d", b.Ins.Len(), size)
	}
	if in, out := b.Ins.Count(g.rank), b.Outs.Count(g.rank); in != out {
		return fmt.Errorf("rank %d sends itself %d elements and expects %d", g.rank, in, out)
	}
	return nil
}

// wantCounts checks that counts has a number for every rank, and that they add up to n.
func wantCounts(g *Group, name string, counts []int, n int) error {
	if size := g.Size(); len(counts) != size {
		return fmt.Errorf("len(%sCounts) is %d: want Size = %d", name, len(counts), size)
	}
	left := n
	for r, m := range counts {
		if m < 0 {
			return fmt.Errorf("%sCounts[%d] is %d", name, r, m)
		}
		if m > left {
			return fmt.Errorf("%sCounts add up to more than len(%s) = %d", name, name, n)
		}
		left -= m
	}
	if left != 0 {
		return fmt.Errorf("%sCounts add up to %d: want len(%s) = %d", name, n-left, name, n)
	}
	return nil
}

// packed returns what ranks agree on.
func (a *Args) packed() call.Packed {
	p := call.Pack(a.Kind, uint8(a.Type), a.Root, a.Count)
	if a.Op != nil {
		p.SetReduction(a.Op)
	}
	return p
}

// set makes c the collective with arguments that have been checked.
func (c *Collective) set(ctx context.Context, g *Group, a *Args, b *Blocks) {
	elem := a.Type.Size()
	c.g, c.ctx, c.elem = g, ctx, elem // all pointers in one go: the write barrier looks once
	c.call = a.packed()
	c.op, c.kernel, c.elemType, c.operandType = a.Op, a.kernel, a.Type, a.Type
	c.out.Buf, c.in.Buf = a.Out, a.In
	if a.Op != nil {
		c.elem *= a.Op.Width
	}
	if b != nil {
		c.setBlocks(a, b)
	}
}

// setBlocks sets the blocks of c, which may have different lengths. If ranks know the same lengths, they agree on them.
func (c *Collective) setBlocks(a *Args, b *Blocks) {
	elem, what := a.Type.Size(), c.call.Call()
	what.Count = 0
	c.out.Bufs, c.in.Bufs = appendBytes(c.out.Bufs, b.Outs, elem), appendBytes(c.in.Bufs, b.Ins, elem)
	switch a.Kind {
	case call.KindAllReduceCoalesced:
		c.out.SetBlocksOfBufs(elem)
		what.Count, what.Root = uint64(a.Count), int32(len(c.out.Bufs))
		what.Detail ^= lengths(&c.out)
	case call.KindAllGatherV:
		c.out.SetBlocksOfBufs(elem)
		agreeOnLengths(&what, &c.out, 1)
	case call.KindReduceScatterV:
		c.in.SetBlocksOfBufs(c.elem)
		agreeOnLengths(&what, &c.in, a.Op.Width)
	case call.KindGatherV:
		if c.g.rank == a.Root {
			c.out.SetBlocksOfBufs(elem)
		} else {
			c.out.Clear()
		}
		c.in.SetBlocks(a.In, a.Count)
	case call.KindScatterV:
		if c.g.rank == a.Root {
			c.in.SetBlocksOfBufs(elem)
		} else {
			c.in.Clear()
		}
		c.out.SetBlocks(a.Out, a.Count)
	default: // AllToAllV
		if b.listed(a) {
			c.out.SetBlocksOfBufs(elem)
			c.in.SetBlocksOfBufs(elem)
			break
		}
		c.out.SetBlocks(a.Out, b.OutCounts...)
		c.in.SetBlocks(a.In, b.InCounts...)
	}
	c.call = what.Pack()
}

// appendBytes appends bufs, of elements of elem bytes, to all.
func appendBytes(all [][]byte, bufs reduce.Buffers, elem int) [][]byte {
	for i := range bufs.Len() {
		all = append(all, bufs.Bytes(i, elem))
	}
	return all
}

// agreeOnLengths makes the lengths of v's blocks, in elements, what ranks agree on.
func agreeOnLengths(what *call.Call, v *pipeline.Vector, width int) {
	call.SetLengths(what, len(v.Blocks), func(i int) int { return v.Blocks[i].Len() * width })
}

// lengths returns a checksum of the lengths of v's blocks.
func lengths(v *pipeline.Vector) uint32 {
	h := call.NoLengths
	for _, b := range v.Blocks {
		h = call.AddLength(h, b.Len())
	}
	return uint32(h ^ h>>32)
}
