// P2p_async: rank 0 starts ten sends to rank 2 without waiting for any, then waits for all; rank 2 sums what it gets.
//
//	gorun --nproc-per-node 3 ./docs/examples/p2p_async
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/gorun/gorun/comm"
)

const messages = 10

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "p2p_async:", err)
		os.Exit(comm.ExitCode(err))
	}
}

func run(ctx context.Context) error {
	world, err := comm.Init(ctx)
	if err != nil {
		return err
	}
	defer world.Close()
	if world.Size() < 3 {
		return fmt.Errorf("want 3 ranks, got %d: run with --nproc-per-node 3", world.Size())
	}
	switch world.Rank() {
	case 0:
		var sends []*comm.Work
		for i := range messages {
			sends = append(sends, comm.ISend(world, []int{i}, 2, i)) // a buffer each: it is comm's until the send is done
		}
		fmt.Printf("rank 0 has started %d sends\n", messages)
		for _, send := range sends {
			if err := send.Wait(ctx); err != nil {
				return err
			}
		}
	case 2:
		sum, number := 0, []int{0}
		for tag := range messages {
			if _, err := comm.Recv(ctx, world, number, 0, tag); err != nil {
				return err
			}
			sum += number[0]
		}
		fmt.Printf("rank 2 has received %d messages, their sum is %d\n", messages, sum)
	}
	return comm.Barrier(ctx, world) // nobody leaves while others may need it
}
