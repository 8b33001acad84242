// Batch: every rank sends two numbers to the next and receives two from the previous, all started at once, so that
// no order of sends and receives can deadlock.
//
//	gorun --nproc-per-node 2 ./docs/examples/batch
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/gorun/gorun/comm"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "batch:", err)
		os.Exit(comm.ExitCode(err))
	}
}

func run(ctx context.Context) error {
	world, err := comm.Init(ctx)
	if err != nil {
		return err
	}
	defer world.Close()
	rank, size := world.Rank(), world.Size()
	next, previous := (rank+1)%size, (rank+size-1)%size

	out, in := []float32{0, 1}, make([]float32, 2)
	for i := range out {
		out[i] += float32(2 * rank)
	}
	works := comm.Batch(
		comm.SendOp(world, out, next),
		comm.RecvOp(world, in, previous),
	)
	for _, work := range works {
		if err := work.Wait(ctx); err != nil {
			return err
		}
	}
	fmt.Printf("rank %d sent %v to rank %d and received %v from rank %d\n", rank, out, next, in, previous)
	return nil
}
