// Pingpong: two ranks pass a number back and forth; each adds one before it sends.
//
//	gorun --nproc-per-node 2 ./docs/examples/pingpong
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/gorun/gorun/comm"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "pingpong:", err)
		os.Exit(comm.ExitCode(err))
	}
}

func run(ctx context.Context) error {
	world, err := comm.Init(ctx)
	if err != nil {
		return err
	}
	defer world.Close()
	if world.Size() != 2 {
		return fmt.Errorf("want 2 ranks, got %d: run with --nproc-per-node 2", world.Size())
	}
	rank := world.Rank()
	number := []float32{0}
	for turn := range 2 { // rank 0 serves, rank 1 returns
		if turn == rank {
			number[0]++
			err = comm.Send(ctx, world, number, 1-rank)
		} else {
			_, err = comm.Recv(ctx, world, number, 1-rank)
		}
		if err != nil {
			return err
		}
		fmt.Printf("rank %d has %v\n", rank, number[0])
	}
	return nil
}
