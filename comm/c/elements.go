package main

// #include "call.h"
import "C"

import (
	"context"

	"github.com/gorun/gorun/comm"
)

// elements carry out a call on elements of each type, in the order of gorun_type.
var elements = [...]func(*comm.Group, *C.struct_call) error{
	on[int8], on[int16], on[int32], on[int64], on[uint8], on[uint16], on[uint32], on[uint64],
	on[float32], on[float64], on[complex64], on[complex128], on[comm.Float16], on[comm.BFloat16],
}

// on carries out c, or starts it, on elements of type T.
func on[T comm.Element](g *comm.Group, c *C.struct_call) error {
	var o operands[T]
	if err := o.take(c, g.Size()); err != nil {
		return err
	}
	if c.work == nil {
		return o.call(g, c)
	}
	*c.work = C.gorun_work(works.add(o.start(g, c)))
	return nil
}

// call carries out a call that blocks.
func (o *operands[T]) call(g *comm.Group, c *C.struct_call) error {
	ctx, root := context.Background(), int(c.rank)
	switch c.kind {
	case C.ALL_REDUCE:
		return comm.AllReduceTo(ctx, g, o.out, o.in, o.op)
	case C.REDUCE:
		return comm.ReduceTo(ctx, g, o.out, o.in, o.op, root)
	case C.SCAN:
		return comm.ScanTo(ctx, g, o.out, o.in, o.op)
	case C.EXSCAN:
		return comm.ExScanTo(ctx, g, o.out, o.in, o.op)
	case C.BROADCAST:
		return comm.Broadcast(ctx, g, o.out, root)
	case C.ALL_GATHER:
		return comm.AllGather(ctx, g, o.out, o.in)
	case C.GATHER:
		return comm.Gather(ctx, g, o.out, o.in, root)
	case C.SCATTER:
		return comm.Scatter(ctx, g, o.out, o.in, root)
	case C.REDUCE_SCATTER:
		return comm.ReduceScatter(ctx, g, o.out, o.in, o.op)
	case C.ALL_TO_ALL:
		return comm.AllToAll(ctx, g, o.out, o.in)
	case C.ALL_GATHERV:
		return comm.AllGatherV(ctx, g, o.list, o.in)
	case C.GATHERV:
		return comm.GatherV(ctx, g, o.list, o.in, root)
	case C.SCATTERV:
		return comm.ScatterV(ctx, g, o.out, o.list, root)
	case C.REDUCE_SCATTERV:
		return comm.ReduceScatterV(ctx, g, o.out, o.list, o.op)
	case C.ALL_REDUCE_COALESCED:
		return comm.AllReduceCoalesced(ctx, g, o.list, o.op)
	case C.ALL_TO_ALLV:
		return comm.AllToAllV(ctx, g, o.out, o.outCounts, o.in, o.inCounts)
	case C.ALL_TO_ALLW:
		return comm.AllToAllW(ctx, g, o.outList, o.list)
	case C.SEND:
		return comm.Send(ctx, g, o.in, root, int(c.tag))
	default: // RECV
		st, err := comm.Recv(ctx, g, o.out, root, int(c.tag))
		return received(c.status, st, err)
	}
}

// start starts a call.
func (o *operands[T]) start(g *comm.Group, c *C.struct_call) *comm.Work {
	root := int(c.rank)
	switch c.kind {
	case C.ALL_REDUCE:
		return comm.IAllReduceTo(g, o.out, o.in, o.op)
	case C.REDUCE:
		return comm.IReduceTo(g, o.out, o.in, o.op, root)
	case C.SCAN:
		return comm.IScanTo(g, o.out, o.in, o.op)
	case C.EXSCAN:
		return comm.IExScanTo(g, o.out, o.in, o.op)
	case C.BROADCAST:
		return comm.IBroadcast(g, o.out, root)
	case C.ALL_GATHER:
		return comm.IAllGather(g, o.out, o.in)
	case C.GATHER:
		return comm.IGather(g, o.out, o.in, root)
	case C.SCATTER:
		return comm.IScatter(g, o.out, o.in, root)
	case C.REDUCE_SCATTER:
		return comm.IReduceScatter(g, o.out, o.in, o.op)
	case C.ALL_TO_ALL:
		return comm.IAllToAll(g, o.out, o.in)
	case C.ALL_GATHERV:
		return comm.IAllGatherV(g, o.list, o.in)
	case C.GATHERV:
		return comm.IGatherV(g, o.list, o.in, root)
	case C.SCATTERV:
		return comm.IScatterV(g, o.out, o.list, root)
	case C.REDUCE_SCATTERV:
		return comm.IReduceScatterV(g, o.out, o.list, o.op)
	case C.ALL_REDUCE_COALESCED:
		return comm.IAllReduceCoalesced(g, o.list, o.op)
	case C.ALL_TO_ALLV:
		return comm.IAllToAllV(g, o.out, o.outCounts, o.in, o.inCounts)
	case C.ALL_TO_ALLW:
		return comm.IAllToAllW(g, o.outList, o.list)
	case C.SEND:
		return comm.ISend(g, o.in, root, int(c.tag))
	default: // RECV
		return comm.IRecv(g, o.out, root, int(c.tag))
	}
}
