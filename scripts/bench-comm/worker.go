package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gorun/gorun/comm"
)

const workerArg = "as-worker"

const (
	batches, few = 9, 3 // of a cell; of one whose calls are slow
	buckets      = 8    // all-reduces at once; the same in mpi.c and gloo.py
)

// A worker is a rank of comm's side; mpi.c and gloo.py are the same for the others.
type worker struct {
	ctx    context.Context
	world  *comm.Group
	shared bool // buffers are comm.Alloc's
	a, b   []float32
	sent   []float32 // of a, by this rank
	values [2][]float32
	stamp  int
}

// work takes TRANSPORT MEMORY OPS SIZES STATES SECONDS; memory is slices or alloc. Lists have commas in them. Rank 0 prints
// "result OP BYTES STATE MICROSECONDS" for each cell.
func work(args []string) error {
	if len(args) != 6 {
		return fmt.Errorf("a worker with %d arguments", len(args))
	}
	seconds, err := strconv.ParseFloat(args[5], 64)
	if err != nil {
		return err
	}
	w := &worker{ctx: context.Background(), shared: args[1] == "alloc", values: [2][]float32{make([]float32, 1024), make([]float32, 1024)}}
	for i := range w.values[1] {
		w.values[1][i] = 1
	}
	if w.world, err = comm.Init(w.ctx, comm.WithTransport(comm.Transport(args[0]))); err != nil {
		return err
	}
	for op := range strings.SplitSeq(args[2], ",") {
		sizes, states := args[3], args[4]
		if op == "barrier" {
			sizes, states = "0", "hot"
		}
		for size := range strings.SplitSeq(sizes, ",") {
			bytes, err := strconv.Atoi(size)
			if err != nil {
				return err
			}
			if err := w.makeBuffers(bytes / 4); err != nil {
				return err
			}
			for state := range strings.SplitSeq(states, ",") {
				if err := w.cell(op, bytes, state, seconds); err != nil {
					return err
				}
			}
		}
	}
	return w.world.Close()
}

// makeBuffers replaces the buffers for operations, and touches the new ones.
func (w *worker) makeBuffers(n int) error {
	for _, buf := range []*[]float32{&w.a, &w.b} {
		if !w.shared {
			*buf = make([]float32, n)
			clear(*buf)
			continue
		}
		err := comm.Free(w.world, *buf)
		if err == nil {
			*buf, err = comm.Alloc[float32](w.world, n)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// cell measures, and prints.
func (w *worker) cell(op string, bytes int, state string, seconds float64) error {
	call, sent := w.operation(op)
	if call == nil {
		return fmt.Errorf("unknown operation %s", op)
	}
	var before func()
	if w.sent = w.a[:sent]; state == "dirty" {
		before = w.rewrite
	}
	took, err := w.measure(before, call, seconds)
	if err != nil {
		return err
	}
	if op == "sendrecv" {
		took /= 2 // there and back
	}
	if w.world.Rank() == 0 {
		_, err = fmt.Fprintf(os.Stdout, "result %s %d %s %.4f\n", op, bytes, state, took*1e6)
	}
	return err
}

// operation returns the call, and how many elements this rank sends by it.
func (w *worker) operation(op string) (call func() error, sent int) {
	ctx, g, a, b := w.ctx, w.world, w.a, w.b
	n := len(a)
	part := n / g.Size()
	switch op {
	case "all_reduce":
		return func() error { return comm.AllReduce(ctx, g, a, comm.Sum) }, n
	case "buckets":
		return w.buckets, n
	case "reduce":
		return func() error { return comm.Reduce(ctx, g, a, comm.Sum, 0) }, n
	case "broadcast":
		return func() error { return comm.Broadcast(ctx, g, a, 0) }, n
	case "all_gather":
		return func() error { return comm.AllGather(ctx, g, b, a[:part]) }, part
	case "reduce_scatter":
		return func() error { return comm.ReduceScatter(ctx, g, b[:part], a, comm.Sum) }, n
	case "all_to_all":
		return func() error { return comm.AllToAll(ctx, g, b, a) }, n
	case "barrier":
		return func() error { return comm.Barrier(ctx, g) }, 0
	case "sendrecv":
		if g.Rank() > 1 {
			return func() error { return nil }, 0
		}
		return w.pingPong, n
	}
	return nil, 0
}

// buckets all-reduces all of a in parts, which are under way at once.
func (w *worker) buckets() error {
	var works [buckets]*comm.Work
	part := len(w.a) / buckets
	for i := range works {
		works[i] = comm.IAllReduce(w.world, w.a[i*part:(i+1)*part], comm.Sum)
	}
	for _, work := range works {
		if err := work.Wait(w.ctx); err != nil {
			return err
		}
	}
	return nil
}

func (w *worker) pingPong() error {
	rank := w.world.Rank()
	if rank == 0 {
		if err := comm.Send(w.ctx, w.world, w.a, 1); err != nil {
			return err
		}
	}
	if _, err := comm.Recv(w.ctx, w.world, w.b, 1-rank); err != nil {
		return err
	}
	if rank == 1 {
		return comm.Send(w.ctx, w.world, w.a, 0)
	}
	return nil
}

// rewrite writes new values to what this rank sends, as a program does between two operations. It copies so little at
// a time that all writes go through the caches.
func (w *worker) rewrite() {
	w.stamp = 1 - w.stamp
	for rest := w.sent; len(rest) > 0; {
		rest = rest[copy(rest, w.values[w.stamp]):]
	}
}

// mean returns how long one of count calls takes this rank, rewriting included if there is any.
func (w *worker) mean(before func(), call func() error, count int) (float64, error) {
	if err := comm.Barrier(w.ctx, w.world); err != nil {
		return 0, err
	}
	began := time.Now()
	for range count {
		if before != nil {
			before()
		}
		if call != nil {
			if err := call(); err != nil {
				return 0, err
			}
		}
	}
	return time.Since(began).Seconds() / float64(count), nil
}

func (w *worker) slowest(mine float64, err error) (float64, error) {
	if err != nil {
		return 0, err
	}
	all := []float64{mine}
	err = comm.AllReduce(w.ctx, w.world, all, comm.Max)
	return all[0], err
}

// measure returns the median over batches of the slowest rank's mean.
func (w *worker) measure(before func(), call func() error, seconds float64) (float64, error) {
	if _, err := w.mean(before, call, 1); err != nil { // the first makes connections, and maps memory
		return 0, err
	}
	count, one := 1, 0.0
	for ; count < 1<<20; count *= 2 {
		var err error
		if one, err = w.slowest(w.mean(before, call, count)); err != nil {
			return 0, err
		}
		if one*float64(count) >= seconds/20 {
			break
		}
	}
	rounds := batches
	if count = int(seconds / batches / one); count < 1 {
		rounds, count = max(few, int(seconds/one)), 1
	}
	times := make([]float64, rounds)
	for i := range times {
		mine, err := w.mean(before, call, count)
		if err == nil && before != nil {
			var alone float64
			alone, err = w.mean(before, nil, count)
			mine -= alone
		}
		if times[i], err = w.slowest(mine, err); err != nil {
			return 0, err
		}
	}
	slices.Sort(times)
	return times[rounds/2], nil
}
