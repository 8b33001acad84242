package shm

import (
	"encoding/binary"
	"fmt"

	"github.com/gorun/gorun/comm/internal/choice"
)

// Ranks exchange blocks whose lengths only their sender and their receiver know. A rank that sends begins with an LL message: the lengths
// of all its blocks. So receivers find a length that they do not expect before they use a byte. Short blocks are in the same entry, whose
// size does not depend on lengths. Longer ones come through slots. An exchange is the only method of its operation.

// An exchange moves block r of ins to rank r, and block r of outs from there.
type exchange struct {
	*Team
	outs, ins        Blocks
	sender, receiver int // the only rank that sends to others, or receives from them; or everybody

	shortAt int // where short blocks are in an entry
	each    int // bytes there for each
}

const lengthSize = 8 // bytes of a length in an LL message

// AllToAllV copies block r of ins to rank r, where it becomes the block of outs whose number is this rank.
func (t *Team) AllToAllV(outs, ins Blocks) error {
	x := t.newExchange(outs, ins, everybody, everybody)
	longest, err := x.moveShort()
	if err != nil {
		return err
	}
	return x.moveLong(longest)
}

// ScatterV copies block r of ins of rank root to out of rank r. On the root, out may be its own block. Other ranks pass no ins.
func (t *Team) ScatterV(out []byte, ins Blocks, root int) error {
	if t.me != root {
		ins = only(root, nil)
	}
	x := t.newExchange(only(root, out), ins, root, everybody)
	longest, err := x.moveShort()
	if err != nil {
		return err
	}
	return x.moveLong(longest)
}

// GatherV copies in of every rank r to block r of outs on root. On the root, in may be its own block. Other ranks pass no outs.
func (t *Team) GatherV(outs Blocks, in []byte, root int) error {
	if t.me != root {
		outs = only(root, nil)
	}
	x := t.newExchange(outs, only(root, in), everybody, root)
	longest, err := x.moveShort()
	if err != nil {
		return err
	}
	return x.gatherLong(longest)
}

func (t *Team) newExchange(outs, ins Blocks, sender, receiver int) exchange {
	x := exchange{Team: t, outs: outs, ins: ins, sender: sender, receiver: receiver, shortAt: llSize(t.n * lengthSize)}
	x.each = (choice.LLEntrySize - x.shortAt) / t.n / lineSize * lineSize
	return x
}

func (x *exchange) sends(r int) bool {
	return x.receiver != r && (x.sender == everybody || x.sender == r)
}

func (x *exchange) receives(r int) bool {
	return x.sender != r && (x.receiver == everybody || x.receiver == r)
}

// mostShort is the most bytes of a block in an entry.
func (x *exchange) mostShort() int { return max(x.each-flagSize, 0) }

// moveShort moves lengths and short blocks. It returns the bytes of the longest block that is to come through slots, as far as this rank
// knows. If every rank receives, they all know.
func (x *exchange) moveShort() (longest int, err error) {
	e := x.next(choice.LLEntrySize)
	if x.sends(x.me) {
		until := reuse{x.receiver, x.time(1)}
		if x.sender == everybody && x.receiver == everybody {
			until.time = at(x.op+1, 0)
		}
		if err := x.reserveLLUntil(until); err != nil {
			return 0, err
		}
		longest = x.sendShort(e)
		x.done(1)
	}
	if !x.receives(x.me) {
		return longest, nil
	}
	for d := 1; d < x.n; d++ {
		if r := (x.me + d) % x.n; x.sends(r) {
			n, err := x.receiveShort(e, r)
			if err != nil {
				return 0, err
			}
			longest = max(longest, n)
		}
	}
	if !x.sends(x.me) {
		x.done(1)
	}
	return longest, nil
}

// sendShort writes this rank's entry.
func (x *exchange) sendShort(e llEntry) (longest int) {
	x.head = x.head[:0]
	for r := range x.n {
		x.head = binary.NativeEndian.AppendUint64(x.head, uint64(len(x.ins.of(r))))
	}
	x.writeLL(e, 0, x.head)
	for r := range x.n {
		switch b := x.ins.of(r); {
		case r == x.me || len(b) == 0:
		case len(b) <= x.mostShort():
			x.writeLL(e, x.shortAt+r*x.each, b)
		default:
			longest = max(longest, len(b))
		}
	}
	return longest
}

// receiveShort reads r's entry.
func (x *exchange) receiveShort(e llEntry, r int) (longest int, err error) {
	head, err := x.readLL(r, e, 0, x.n*lengthSize)
	if err != nil {
		return 0, err
	}
	for to := range x.n {
		n := int(binary.NativeEndian.Uint64(head[to*lengthSize:]))
		if want := len(x.outs.of(r)); to == x.me && n != want {
			return 0, &OtherLength{Rank: r, Got: n, Want: want}
		}
		if to != r && n > x.mostShort() {
			longest = max(longest, n)
		}
	}
	if b := x.outs.of(r); len(b) > 0 && len(b) <= x.mostShort() {
		err = x.copyLL(r, e, x.shortAt+x.me*x.each, b)
	}
	return longest, err
}

// moveLong moves the blocks that come through slots, if there are any, and this rank's block for itself. All ranks know the longest one.
func (x *exchange) moveLong(longest int) error {
	_, whole := x.outs.lengths(x.n)
	done := 0 // bytes of this rank's block for itself
	if longest > 0 {
		size, chunks := x.chunking(longest, slotPerRank(x.slot, x.n))
		outs, ins := x.outs.longerThan(x.mostShort()), x.ins.longerThan(x.mostShort())
		if err := x.exchangeBlocks(&outs, &ins, size, chunks, whole, x.sends(x.me), x.receives(x.me)); err != nil {
			return err
		}
		done = min(size*chunks, len(ins.of(x.me)))
	}
	x.copyOwn(done, whole)
	return nil
}

// copyOwn copies this rank's block for itself, from byte from on.
func (x *exchange) copyOwn(from, whole int) {
	dst, src := x.outs.of(x.me), x.ins.of(x.me)
	x.copyOut(dst[from:], src[from:], whole)
}

// exchangeBlocks moves block r of ins to rank r, and block r of outs from there, through slots. This rank's block for itself is copied as
// far as the others' reach.
func (t *Team) exchangeBlocks(outs, ins *Blocks, size, chunks, whole int, sends, receives bool) error {
	fill := func(i int) error {
		err := t.fillBlocks(i, size, ins)
		if err == nil {
			t.copyOut(cut(outs.of(t.me), i, size), cut(ins.of(t.me), i, size), whole)
		}
		return err
	}
	read := func(i int) error { return t.readBlocks(i, size, t.me*size, whole, outs) }
	t.layOut(t.n * size)
	switch {
	case !receives:
		return t.pipeline(chunks, fill)
	case !sends:
		return t.pipeline(chunks, read)
	}
	return t.pipeline(chunks, fill, read)
}

// gatherLong is moveLong to one rank. Others do not know how many chunks come through slots. So the first slot is as long as any, and that
// of the next operation follows it, in whichever lap.
func (x *exchange) gatherLong(longest int) (err error) {
	_, whole := x.outs.lengths(x.n)
	size, chunks := x.slot, (longest+x.slot-1)/x.slot
	x.layOut(size)
	next := x.at(1)
	switch {
	case chunks == 0:
	case x.receives(x.me):
		outs := x.outs.longerThan(x.mostShort())
		err = x.pipeline(chunks, func(i int) error { return x.readBlocks(i, size, 0, whole, &outs) })
	default:
		in := x.ins.of(x.receiver)
		err = x.pipeline(chunks, func(i int) error { return x.fillSlot(i, x.receiver, cut(in, i, size)) })
	}
	if x.skipTo(next); err == nil {
		x.copyOwn(0, whole)
	}
	return err
}

// An OtherLength says that another rank sends a block of another length than this one expects.
type OtherLength struct{ Rank, Got, Want int } // in bytes

func (o *OtherLength) Error() string {
	return fmt.Sprintf("rank %d sends %d bytes: want %d", o.Rank, o.Got, o.Want)
}
