package main

// #include "call.h"
import "C"

import (
	"math"
	"runtime/debug"
	"unsafe"

	"github.com/gorun/gorun/comm"
)

// operands are what a call works on, as the functions of package comm take it.
type operands[T comm.Element] struct {
	in, out             []T
	list, outList       [][]T // a buffer for each rank
	inCounts, outCounts []int
	op                  comm.Op
}

// take sets o to the operands of c, on a group of size ranks, unless they cannot be in memory.
func (o *operands[T]) take(c *C.struct_call, size int) (err error) {
	if o.op, err = opOf[T](c); err != nil {
		return err
	}
	if err := checkLists[T](c, size); err != nil {
		return err
	}
	count := int(c.count)
	ins, outs, buffers := count, count, size
	switch c.kind {
	case C.ALL_GATHER, C.GATHER:
		outs = times(count, size)
	case C.SCATTER, C.REDUCE_SCATTER:
		ins = times(count, size)
	case C.ALL_TO_ALL:
		ins, outs = times(count, size), times(count, size)
	case C.ALL_TO_ALLV:
		o.inCounts, ins = counts(c.in_counts, size)
		o.outCounts, outs = counts(c.out_counts, size)
	case C.ALL_REDUCE_COALESCED:
		buffers = int(c.n)
	}
	in := unsafe.Pointer(c.in)
	if !fits[T](in, ins) || !fits[T](c.out, outs) {
		return refuse(names[c.kind], "%d elements are more than there can be", uint64(c.count))
	}
	if in == nil && ins > 0 && needsIn[c.kind] || c.out == nil && outs > 0 && needsOut[c.kind] {
		return refuse(names[c.kind], "a buffer of %d elements is NULL", uint64(c.count))
	}
	o.in, o.out = slice[T](in, ins), slice[T](c.out, outs)
	o.list, o.outList = list[T](c.list, buffers), list[T](c.out_list, size)
	return nil
}

// What a rank needs whichever the root is. Other buffers are missed where their lengths are compared.
var (
	needsIn = [len(names)]bool{
		C.ALL_REDUCE: true, C.REDUCE: true, C.SCAN: true, C.EXSCAN: true, C.ALL_GATHER: true, C.GATHER: true, C.REDUCE_SCATTER: true,
		C.ALL_TO_ALL: true, C.ALL_GATHERV: true, C.GATHERV: true, C.ALL_TO_ALLV: true, C.SEND: true,
	}
	needsOut = [len(names)]bool{
		C.ALL_REDUCE: true, C.SCAN: true, C.BROADCAST: true, C.ALL_GATHER: true, C.SCATTER: true, C.REDUCE_SCATTER: true,
		C.ALL_TO_ALL: true, C.SCATTERV: true, C.REDUCE_SCATTERV: true, C.ALL_TO_ALLV: true, C.RECV: true,
	}
)

// times is a times b, or -1 if that is no int.
func times(a, b int) int {
	if n := a * b; n/b == a {
		return n
	}
	return -1
}

// slice is n elements of memory of C, or no buffer if there is none.
func slice[T comm.Element](p unsafe.Pointer, n int) []T {
	if p == nil {
		return nil
	}
	return unsafe.Slice((*T)(p), n)
}

// fits reports whether n elements can begin at p.
func fits[T comm.Element](p unsafe.Pointer, n int) bool {
	var e T
	size := uint64(unsafe.Sizeof(e))
	return n >= 0 && uint64(n) <= min(math.MaxInt, math.MaxUint64-uint64(uintptr(p)))/size
}

// list is the buffers of a list of C.
func list[T comm.Element](p *C.gorun_buffer, n int) [][]T {
	if p == nil {
		return nil
	}
	all := make([][]T, n)
	for i, b := range unsafe.Slice(p, n) {
		all[i] = slice[T](b.data, int(b.count))
	}
	return all
}

// counts are n counts of C, and their sum.
func counts(p *C.size_t, n int) (all []int, sum int) {
	if p == nil {
		return nil, 0
	}
	all = make([]int, n)
	for i, c := range unsafe.Slice(p, n) {
		all[i] = int(c)
		sum += all[i]
	}
	return all, sum
}

// checkLists returns an error if a list of C is not where its pointer says, or has more elements than there can be. It has
// one entry for each of size ranks, or c.n.
func checkLists[T comm.Element](c *C.struct_call, size int) (err error) {
	if c.list == nil && c.out_list == nil && c.in_counts == nil && c.out_counts == nil {
		return nil
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() != nil {
			err = refuse(names[c.kind], "a list is not in memory of this process")
		}
	}()
	n := size
	if c.kind == C.ALL_REDUCE_COALESCED {
		if n = int(c.n); n < 0 {
			return refuse(names[c.kind], "%d buffers", n)
		}
	}
	for _, list := range []*C.gorun_buffer{c.list, c.out_list} {
		if list == nil {
			continue
		}
		for i, b := range unsafe.Slice(list, n) {
			if b.data == nil && b.count > 0 {
				return refuse(names[c.kind], "buffer %d of the list is NULL, and has %d elements", i, uint64(b.count))
			}
			if !fits[T](b.data, int(b.count)) {
				return refuse(names[c.kind], "buffer %d of the list: %d elements are more than there can be", i, uint64(b.count))
			}
		}
	}
	for _, p := range []*C.size_t{c.in_counts, c.out_counts} {
		if p == nil {
			continue
		}
		sum := 0
		for i, count := range unsafe.Slice(p, n) {
			if sum += int(count); !fits[T](nil, int(count)) || !fits[T](nil, sum) {
				return refuse(names[c.kind], "%d elements for rank %d are more than there can be", uint64(count), i)
			}
		}
	}
	return nil
}
