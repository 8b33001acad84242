package reduce

import "slices"

// block is the bytes of a vector that Fold combines before it goes on: all that it takes stays in the first cache.
const block = 4 << 10

// Fold sets every value of dst to srcs[0] op srcs[1] op ..., in this order. All are equally long, there is at least one
// of srcs, and dst is one of them or apart from all. Sums and products of Float16 and BFloat16 are rounded once.
func Fold(t Type, o Op, dst []byte, srcs [][]byte) { current.fold(t, o, dst, srcs) }

func (l *level) fold(t Type, o Op, dst []byte, srcs [][]byte) {
	switch {
	case len(dst) == 0:
	case len(srcs) == 1:
		copy(dst, srcs[0])
	case len(srcs) == 2:
		l.combine[t][o](dst, srcs[0], srcs[1])
	case l.accumulate[t][o] != nil:
		l.foldWide(t, o, dst, srcs)
	default:
		l.foldBlocks(l.combine[t][o], dst, srcs)
	}
}

// Folds are Fold of half floats, where that is not the same as a kernel again and again; nil for all else.
func Folds(t Type, o Op) func(dst []byte, srcs [][]byte) {
	if int(t) >= numTypes || int(o) >= numOps {
		return nil
	}
	return folds[t][o]
}

var folds = func() (table [numTypes][numOps]func(dst []byte, srcs [][]byte)) {
	for _, t := range []Type{Float16, BFloat16} {
		for _, o := range []Op{Sum, Prod} {
			table[t][o] = func(dst []byte, srcs [][]byte) { Fold(t, o, dst, srcs) }
		}
	}
	return table
}()

// foldBlocks combines block by block, in dst itself unless that would overwrite an operand too early.
func (l *level) foldBlocks(k Kernel, dst []byte, srcs [][]byte) {
	var acc []byte
	if slices.ContainsFunc(srcs[2:], func(src []byte) bool { return &src[0] == &dst[0] }) {
		room := takeRoom()
		defer room.giveBack()
		acc = Bytes(room[:])
	}
	last := len(srcs) - 1
	for from := 0; from < len(dst); from += block {
		to := min(from+block, len(dst))
		part := dst[from:to]
		if acc != nil {
			part = acc[:to-from]
		}
		k(part, srcs[0][from:to], srcs[1][from:to])
		for _, src := range srcs[2:last] {
			k(part, part, src[from:to])
		}
		k(dst[from:to], part, srcs[last][from:to])
	}
}

// foldWide combines half floats in float32.
func (l *level) foldWide(t Type, o Op, dst []byte, srcs [][]byte) {
	room := takeRoom()
	defer room.giveBack()
	for from := 0; from < len(dst); from += block / 2 {
		to := min(from+block/2, len(dst))
		acc := room[:(to-from)/2]
		l.widen[t](acc, srcs[0][from:to])
		for _, src := range srcs[1:] {
			l.accumulate[t][o](acc, src[from:to])
		}
		l.narrow[t](dst[from:to], acc)
	}
}

// room is where a block is combined.
type room [block / 4]float32

// rooms are those that nobody uses, as many as were ever needed at once, up to a few.
var rooms = make(chan *room, 16)

func takeRoom() *room {
	select {
	case r := <-rooms:
		return r
	default:
		return new(room)
	}
}

func (r *room) giveBack() {
	select {
	case rooms <- r:
	default:
	}
}
