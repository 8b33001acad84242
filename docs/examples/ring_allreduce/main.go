// Ring_allreduce: the ring all-reduce built by hand from Send and Recv. Every rank cuts its vector into as many
// blocks as there are ranks. In the reduce-scatter half each block travels once around the ring and collects every
// rank's part; in the all-gather half the finished blocks travel around once more.
//
//	gorun --nproc-per-node 4 ./docs/examples/ring_allreduce
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/gorun/gorun/comm"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "ring_allreduce:", err)
		os.Exit(comm.ExitCode(err))
	}
}

func run(ctx context.Context) error {
	world, err := comm.Init(ctx)
	if err != nil {
		return err
	}
	defer world.Close()
	vector := make([]float32, 8)
	for i := range vector {
		vector[i] = 1
	}
	if err := ringAllReduce(ctx, world, vector); err != nil {
		return err
	}
	fmt.Printf("rank %d of %d has %v\n", world.Rank(), world.Size(), vector)
	return nil
}

// ringAllReduce sums vector over all ranks of g, in place.
func ringAllReduce(ctx context.Context, g *comm.Group, vector []float32) error {
	rank, size := g.Rank(), g.Size()
	block := func(i int) []float32 { // block i, counted around the ring
		i = (i%size + size) % size
		return vector[i*len(vector)/size : (i+1)*len(vector)/size]
	}
	arrived := make([]float32, len(vector)/size+1)
	for step := range size - 1 { // reduce-scatter: at the end rank r holds the whole sum of block r+1
		mine := block(rank - step - 1)
		n, err := exchange(ctx, g, block(rank-step), arrived)
		if err != nil {
			return err
		}
		for i := range n {
			mine[i] += arrived[i]
		}
	}
	for step := range size - 1 { // all-gather
		if _, err := exchange(ctx, g, block(rank-step+1), block(rank-step)); err != nil {
			return err
		}
	}
	return nil
}

// exchange sends out to the next rank while it receives into in from the previous one.
func exchange(ctx context.Context, g *comm.Group, out, in []float32) (received int, err error) {
	rank, size := g.Rank(), g.Size()
	send := comm.ISend(g, out, (rank+1)%size)
	status, err := comm.Recv(ctx, g, in, (rank+size-1)%size)
	return status.Count, errors.Join(err, send.Wait(ctx))
}
