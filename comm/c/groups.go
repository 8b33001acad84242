package main

// #include "call.h"
import "C"

import (
	"context"
	"time"

	"github.com/gorun/gorun/comm"
)

var (
	groups handles[*comm.Group]
	works  handles[*comm.Work]
)

// groupOf returns the group that n is a handle of, for a call of op.
func groupOf(n C.gorun_comm, op string) (*comm.Group, error) {
	g, ok := groups.get(uint64(n))
	if !ok {
		return nil, groups.missing(uint64(n), op, "group", comm.ErrClosed)
	}
	return g, nil
}

//export goOnGroup
func goOnGroup(c *C.struct_call) C.int {
	if code := cleared(names[c.kind], c.work, c.found, c.status); code != 0 {
		return code
	}
	return fail(onGroup(c))
}

// cleared sets what a call gives to C to zeros, before it begins.
func cleared(op string, work *C.gorun_work, flag *C.int, status *C.gorun_status) (code C.int) {
	defer checked(op, &code)()
	if work != nil {
		*work = 0
	}
	if flag != nil {
		*flag = 0
	}
	if status != nil {
		*status = C.gorun_status{}
	}
	return C.GORUN_SUCCESS
}

func onGroup(c *C.struct_call) (err error) {
	defer caught(&err)
	g, err := groupOf(c.comm, names[c.kind])
	if err != nil {
		return err
	}
	switch c.kind {
	case C.BARRIER:
		if c.work != nil {
			*c.work = C.gorun_work(works.add(comm.IBarrier(g)))
			return nil
		}
		return comm.Barrier(context.Background(), g)
	case C.MONITORED_BARRIER:
		return comm.MonitoredBarrier(context.Background(), g)
	case C.PROBE:
		st, err := comm.Probe(context.Background(), g, int(c.rank), int(c.tag))
		return received(c.status, st, err)
	case C.IPROBE:
		st, found, err := comm.TryProbe(g, int(c.rank), int(c.tag))
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
	C.SCATTERV: "ScatterV", C.REDUCE_SCATTERV: "ReduceScatterV", C.ALL_TO_ALLV: "AllToAllV", C.ALL_TO_ALLW: "AllToAllW",
	C.ALL_REDUCE_COALESCED: "AllReduceCoalesced", C.SEND: "Send", C.RECV: "Recv", C.PROBE: "Probe", C.IPROBE: "TryProbe",
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
	if code := cleared("Wait", nil, done, status); code != 0 {
		return code
	}
	if done != nil {
		ended, err := w.WaitFor(inTime(seconds))
		if !ended {
			return fail(err)
		}
		*done = 1
	}
	err := wait(w)
	works.remove(uint64(work))
	return fail(received(status, w.Status(), err))
}

func wait(w *comm.Work) (err error) {
	defer caught(&err)
	return w.Wait(context.Background())
}

// within returns a context that ends after so many seconds; 0 means never.
func within(seconds C.double) (context.Context, context.CancelFunc) {
	if seconds <= 0 {
		return context.WithCancel(context.Background())
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
