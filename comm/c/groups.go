package main

// #include "call.h"
import "C"

import (
	"context"
	"errors"
	"math"
	"runtime/debug"
	"time"
	"unsafe"

	"github.com/gorun/gorun/comm"
)

var (
	groups handles[*comm.Group]
	works  handles[*comm.Work]
)

//export goOnGroup
func goOnGroup(c *C.struct_call) C.int {
	return fail(onGroup(c))
}

func onGroup(c *C.struct_call) error {
	g, ok := groups.get(uint64(c.comm))
	if !ok {
		return refuse(names[c.kind], "%d is no group, or one that has been closed", uint64(c.comm))
	}
	switch c.kind {
	case C.BARRIER:
		if c.work != nil {
			return begun(c, comm.IBarrier(g))
		}
		return comm.Barrier(context.Background(), g)
	case C.MONITORED_BARRIER:
		return comm.MonitoredBarrier(context.Background(), g)
	case C.PROBE:
		st, err := comm.Probe(context.Background(), g, int(c.rank), int(c.tag))
		return received(c.status, st, err)
	case C.IPROBE:
		st, found, err := comm.TryProbe(g, int(c.rank), int(c.tag))
		*c.found = 0
		if found {
			*c.found = 1
		}
		return received(c.status, st, err)
	}
	if c._type < 1 || int(c._type) > len(elements) {
		return refuse(names[c.kind], "there is no type %d", int(c._type))
	}
	return elements[c._type-1](g, c)
}

// names are what kinds are called in errors.
var names = [...]string{
	C.BARRIER: "Barrier", C.MONITORED_BARRIER: "MonitoredBarrier", C.ALL_REDUCE: "AllReduce", C.REDUCE: "Reduce", C.SCAN: "Scan",
	C.EXSCAN: "ExScan", C.BROADCAST: "Broadcast", C.ALL_GATHER: "AllGather", C.GATHER: "Gather", C.SCATTER: "Scatter",
	C.REDUCE_SCATTER: "ReduceScatter", C.ALL_TO_ALL: "AllToAll", C.ALL_GATHERV: "AllGatherV", C.GATHERV: "GatherV",
	C.SCATTERV: "ScatterV", C.REDUCE_SCATTERV: "ReduceScatterV", C.ALL_TO_ALLV: "AllToAllV",
	C.ALL_REDUCE_COALESCED: "AllReduceCoalesced", C.SEND: "Send", C.RECV: "Recv", C.PROBE: "Probe", C.IPROBE: "TryProbe",
}

// elements carry out a call on elements of each type, in the order of gorun_type.
var elements = [...]func(*comm.Group, *C.struct_call) error{
	on[int8], on[int16], on[int32], on[int64], on[uint8], on[uint16], on[uint32], on[uint64],
	on[float32], on[float64], on[complex64], on[complex128], on[comm.Float16], on[comm.BFloat16],
}

// ops are the reductions, in the order of gorun_op.
var ops = [...]comm.Op{
	comm.Sum, comm.Prod, comm.Min, comm.Max, comm.BitAnd, comm.BitOr, comm.BitXor, comm.LogicalAnd, comm.LogicalOr,
	comm.LogicalXor, comm.MinLoc, comm.MaxLoc, comm.Avg,
}

// on carries out c, or starts it, on elements of type T.
func on[T comm.Element](g *comm.Group, c *C.struct_call) error {
	var op comm.Op
	if c.op != 0 {
		if c.op < 0 || int(c.op) > len(ops) {
			return refuse(names[c.kind], "there is no reduction %d", int(c.op))
		}
		op = ops[c.op-1]
	}
	in, out := unsafe.Pointer(c.in), c.out
	ctx, started := context.Background(), c.work != nil
	count, root, size := int(c.count), int(c.rank), g.Size()
	length := count // of the longer buffer
	switch c.kind {
	case C.ALL_GATHER, C.GATHER, C.SCATTER, C.REDUCE_SCATTER, C.ALL_TO_ALL:
		if length *= size; length/size != count {
			length = -1
		}
	}
	if !fits[T](in, length) || !fits[T](out, length) {
		return refuse(names[c.kind], "%d elements are more than there can be", uint64(c.count))
	}
	if err := checkLists[T](c, size); err != nil {
		return err
	}
	switch c.kind {
	case C.ALL_REDUCE:
		if started {
			return begun(c, comm.IAllReduceTo(g, slice[T](out, count), slice[T](in, count), op))
		}
		return comm.AllReduceTo(ctx, g, slice[T](out, count), slice[T](in, count), op)
	case C.REDUCE:
		if started {
			return begun(c, comm.IReduceTo(g, slice[T](out, count), slice[T](in, count), op, root))
		}
		return comm.ReduceTo(ctx, g, slice[T](out, count), slice[T](in, count), op, root)
	case C.SCAN:
		if started {
			return begun(c, comm.IScanTo(g, slice[T](out, count), slice[T](in, count), op))
		}
		return comm.ScanTo(ctx, g, slice[T](out, count), slice[T](in, count), op)
	case C.EXSCAN:
		if started {
			return begun(c, comm.IExScanTo(g, slice[T](out, count), slice[T](in, count), op))
		}
		return comm.ExScanTo(ctx, g, slice[T](out, count), slice[T](in, count), op)
	case C.BROADCAST:
		if started {
			return begun(c, comm.IBroadcast(g, slice[T](out, count), root))
		}
		return comm.Broadcast(ctx, g, slice[T](out, count), root)
	case C.ALL_GATHER:
		if started {
			return begun(c, comm.IAllGather(g, slice[T](out, count*size), slice[T](in, count)))
		}
		return comm.AllGather(ctx, g, slice[T](out, count*size), slice[T](in, count))
	case C.GATHER:
		if started {
			return begun(c, comm.IGather(g, slice[T](out, count*size), slice[T](in, count), root))
		}
		return comm.Gather(ctx, g, slice[T](out, count*size), slice[T](in, count), root)
	case C.SCATTER:
		if started {
			return begun(c, comm.IScatter(g, slice[T](out, count), slice[T](in, count*size), root))
		}
		return comm.Scatter(ctx, g, slice[T](out, count), slice[T](in, count*size), root)
	case C.REDUCE_SCATTER:
		if started {
			return begun(c, comm.IReduceScatter(g, slice[T](out, count), slice[T](in, count*size), op))
		}
		return comm.ReduceScatter(ctx, g, slice[T](out, count), slice[T](in, count*size), op)
	case C.ALL_TO_ALL:
		if started {
			return begun(c, comm.IAllToAll(g, slice[T](out, count*size), slice[T](in, count*size)))
		}
		return comm.AllToAll(ctx, g, slice[T](out, count*size), slice[T](in, count*size))
	case C.ALL_GATHERV:
		if started {
			return begun(c, comm.IAllGatherV(g, list[T](c.list, size), slice[T](in, count)))
		}
		return comm.AllGatherV(ctx, g, list[T](c.list, size), slice[T](in, count))
	case C.GATHERV:
		if started {
			return begun(c, comm.IGatherV(g, list[T](c.list, size), slice[T](in, count), root))
		}
		return comm.GatherV(ctx, g, list[T](c.list, size), slice[T](in, count), root)
	case C.SCATTERV:
		if started {
			return begun(c, comm.IScatterV(g, slice[T](out, count), list[T](c.list, size), root))
		}
		return comm.ScatterV(ctx, g, slice[T](out, count), list[T](c.list, size), root)
	case C.REDUCE_SCATTERV:
		if started {
			return begun(c, comm.IReduceScatterV(g, slice[T](out, count), list[T](c.list, size), op))
		}
		return comm.ReduceScatterV(ctx, g, slice[T](out, count), list[T](c.list, size), op)
	case C.ALL_REDUCE_COALESCED:
		if started {
			return begun(c, comm.IAllReduceCoalesced(g, list[T](c.list, int(c.n)), op))
		}
		return comm.AllReduceCoalesced(ctx, g, list[T](c.list, int(c.n)), op)
	case C.ALL_TO_ALLV:
		inCounts, sent := counts(c.in_counts, size)
		outCounts, received := counts(c.out_counts, size)
		if started {
			return begun(c, comm.IAllToAllV(g, slice[T](out, received), outCounts, slice[T](in, sent), inCounts))
		}
		return comm.AllToAllV(ctx, g, slice[T](out, received), outCounts, slice[T](in, sent), inCounts)
	case C.SEND:
		if started {
			return begun(c, comm.ISend(g, slice[T](in, count), root, int(c.tag)))
		}
		return comm.Send(ctx, g, slice[T](in, count), root, int(c.tag))
	case C.RECV:
		if started {
			return begun(c, comm.IRecv(g, slice[T](out, count), root, int(c.tag)))
		}
		st, err := comm.Recv(ctx, g, slice[T](out, count), root, int(c.tag))
		return received(c.status, st, err)
	}
	return errors.New("gorun: no such call")
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
	if c.list == nil && c.in_counts == nil && c.out_counts == nil {
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
	if c.list != nil {
		for i, b := range unsafe.Slice(c.list, n) {
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

// begun gives C a handle of w.
func begun(c *C.struct_call, w *comm.Work) error {
	*c.work = C.gorun_work(works.add(w))
	return nil
}

// received gives C what a receive has received.
func received(to *C.gorun_status, st comm.Status, err error) error {
	if err == nil && to != nil {
		*to = C.gorun_status{source: C.int(st.Source), tag: C.int(st.Tag), count: C.size_t(st.Count)}
	}
	return err
}

//export goWait
func goWait(work C.gorun_work, seconds C.double, done *C.int, status *C.gorun_status) C.int {
	w, ok := works.get(uint64(work))
	if !ok {
		return fail(refuse("Wait", "%d is no work, or one that has ended and been waited for", uint64(work)))
	}
	if done != nil {
		ended, err := w.WaitFor(inTime(seconds))
		if !ended {
			return fail(err)
		}
		*done = 1
	}
	err := w.Wait(context.Background())
	works.remove(uint64(work))
	return fail(received(status, w.Status(), err))
}

// within returns a context that ends after so many seconds; 0 means never.
func within(seconds C.double) (context.Context, context.CancelFunc) {
	if seconds <= 0 {
		return context.Background(), func() {}
	}
	return context.WithTimeout(context.Background(), inTime(seconds))
}

// inTime returns so many seconds, or for ever, which is 36 years.
func inTime(seconds C.double) time.Duration {
	const ever = time.Duration(1 << 60)
	if d := float64(seconds) * float64(time.Second); d < float64(ever) {
		return time.Duration(d)
	}
	return ever
}
