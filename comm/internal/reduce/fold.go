package reduce

import (
	"slices"
	"sync"
)

// block is the bytes of a vector that Fold combines at a time, so that all operands stay in the first cache.
const block = 4 << 10

// Fold sets every value of dst to srcs[0] op srcs[1] op ..., in this order. There is at least one source, and all
// vectors are equally long. dst is one of the sources, or overlaps none. Sums and products of Float16 and BFloat16 are
// rounded once.
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

// Folds returns Fold of a type and an operation if it differs from applying the kernel repeatedly, as it does for sums
// and products of half floats. Otherwise it returns nil.
func Folds(t Type, o Op) func(dst []byte, srcs [][]byte) {
	if int(t) >= numTypes || int(o) >= numOps {
		return nil
	}
	return current.folds[t][o]
}

// foldBlocks combines block by block. It works in dst itself, unless that would overwrite an operand too early.
func (l *level) foldBlocks(k Kernel, dst []byte, srcs [][]byte) {
	var acc []byte
	if slices.ContainsFunc(srcs[2:], func(src []byte) bool { return &src[0] == &dst[0] }) {
		s := scratches.Get().(*scratch)
		defer scratches.Put(s)
		acc = Bytes(s[:])
	}
	last := len(srcs) - 1
	for from := 0; from < len(dst); from += block {
		to := min(from+block, len(dst))
		sum := dst[from:to]
		if acc != nil {
			sum = acc[:to-from]
		}
		k(sum, srcs[0][from:to], srcs[1][from:to])
		for _, src := range srcs[2:last] {
			k(sum, sum, src[from:to])
		}
		k(dst[from:to], sum, srcs[last][from:to])
	}
}

// foldWide combines half floats in float32.
func (l *level) foldWide(t Type, o Op, dst []byte, srcs [][]byte) {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	for from := 0; from < len(dst); from += block / 2 {
		to := min(from+block/2, len(dst))
		acc := s[:(to-from)/2]
		l.widen[t](acc, srcs[0][from:to])
		for _, src := range srcs[1:] {
			l.accumulate[t][o](acc, src[from:to])
		}
		l.narrow[t](dst[from:to], acc)
	}
}

// A scratch is memory in which a block is combined.
type scratch [block / 4]float32

var scratches = sync.Pool{New: func() any { return new(scratch) }}
