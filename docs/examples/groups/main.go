// Groups: a group of world ranks 2, 4, 6, 8 and 10 has ranks 0 to 4 of its own. Its rank 0 sends to its rank 4.
//
//	gorun --nproc-per-node 11 ./docs/examples/groups
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/gorun/gorun/comm"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "groups:", err)
		os.Exit(comm.ExitCode(err))
	}
}

func run(ctx context.Context) error {
	world, err := comm.Init(ctx)
	if err != nil {
		return err
	}
	defer world.Close()
	if world.Size() != 11 {
		return fmt.Errorf("want 11 ranks, got %d: run with --nproc-per-node 11", world.Size())
	}
	even, err := comm.NewGroup(ctx, world, []int{2, 4, 6, 8, 10}) // every rank of the world calls it
	if err != nil {
		return err
	}
	if even == nil { // this rank is not a member
		return nil
	}
	number := []int{0}
	switch even.Rank() {
	case 0:
		number[0] = 42
		if err := comm.Send(ctx, even, number, 4); err != nil {
			return err
		}
		fmt.Printf("world rank %d (group rank 0) sent %d to group rank 4, which is world rank %d\n",
			world.Rank(), number[0], even.WorldRank(4))
	case 4:
		status, err := comm.Recv(ctx, even, number, 0)
		if err != nil {
			return err
		}
		fmt.Printf("world rank %d (group rank 4) received %d from group rank %d, which is world rank %d\n",
			world.Rank(), number[0], status.Source, even.WorldRank(status.Source))
	}
	return comm.Barrier(ctx, even)
}
