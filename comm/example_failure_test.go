//go:build !race

package comm_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/gorun/gorun/comm"
)

func ExampleMonitoredBarrier() {
	inWorld(4, func(ctx context.Context, world *comm.Group) error {
		group, err := comm.NewGroup(ctx, world, []int{0, 1, 2, 3}, comm.WithTimeout(2*time.Second))
		if err != nil {
			return err
		}
		if world.Rank() == 1 || world.Rank() == 3 {
			return comm.Barrier(ctx, world) // forgets the other one
		}
		err = comm.MonitoredBarrier(ctx, group)
		var missing *comm.MissingRanksError
		if errors.As(err, &missing) && world.Rank() == 0 {
			fmt.Println("ranks that did not come:", missing.Missing)
		}
		return comm.Barrier(ctx, world)
	})
	// Output: ranks that did not come: [1 3]
}

// Ranks that call different things are told so, whoever they wait for.
func ExampleMismatchError() {
	inWorld(2, func(ctx context.Context, world *comm.Group) error {
		err := comm.Broadcast(ctx, world, make([]float32, 8), 1-world.Rank()) // each waits for the other
		var mismatch *comm.MismatchError
		if errors.As(err, &mismatch) && world.Rank() == 0 {
			for _, c := range mismatch.Calls {
				fmt.Println("rank", c.Rank, "called", c.Call)
			}
		}
		return nil
	})
	// Output:
	// rank 0 called Broadcast(float32 × 8, from 1)
	// rank 1 called Broadcast(float32 × 8, from 0)
}

func ExampleDeadlockError() {
	inWorld(2, func(ctx context.Context, world *comm.Group) error {
		group, err := comm.NewGroup(ctx, world, []int{0, 1}, comm.WithTimeout(3*time.Second))
		if err != nil {
			return err
		}
		_, err = comm.Recv(ctx, group, []int{0}, 1-group.Rank()) // nobody sends
		var deadlock *comm.DeadlockError
		if errors.As(err, &deadlock) && world.Rank() == 0 {
			w := deadlock.Waits[0]
			fmt.Println("rank", w.Rank, "waits for rank", w.For, "in", w.In)
		}
		return comm.Barrier(ctx, world)
	})
	// Output: rank 0 waits for rank 1 in Recv #1
}

func ExampleGroup_Abort() {
	inWorld(3, func(ctx context.Context, world *comm.Group) error {
		if world.Rank() == 2 {
			world.Abort(errors.New("the loss is not a number"))
			return nil
		}
		err := comm.Barrier(ctx, world)
		var abort *comm.AbortError
		if errors.As(err, &abort) && world.Rank() == 0 {
			fmt.Printf("rank %d gave up: %v\n", abort.Rank, abort.Err)
		}
		return nil
	})
	// Output: rank 2 gave up: the loss is not a number
}

func ExampleGroup_Flight() {
	inWorld(2, func(ctx context.Context, world *comm.Group) error {
		if err := comm.AllReduce(ctx, world, make([]float32, 8), comm.Sum); err != nil {
			return err
		}
		if world.Rank() == 0 {
			for _, c := range world.Flight().Collectives {
				fmt.Printf("#%d %s: %s, %d bytes sent\n", c.Seq, c.Call, c.State, c.Sent)
			}
		}
		return comm.Barrier(ctx, world)
	})
	// Output: #1 AllReduce(float32 × 8, Sum): done, 32 bytes sent
}

func ExampleWriteFlight() {
	if err := comm.WriteFlight(os.Stdout); err != nil { // no group is open
		fmt.Println(err)
	}
	// Output:
}

// A program that waits for something else learns of a failure from Done.
func ExampleGroup_Done() {
	inWorld(3, func(ctx context.Context, world *comm.Group) error {
		group, err := comm.NewGroup(ctx, world, []int{0, 1, 2})
		if err != nil {
			return err
		}
		if group.Rank() == 2 {
			group.Abort(errors.New("the loss is NaN"))
		}
		<-group.Done()
		culprit, ok := errors.AsType[comm.RankError](group.Err())
		if world.Rank() == 0 {
			fmt.Println(ok && culprit.FailedRank() == 2)
		}
		return comm.Barrier(ctx, world)
	})
	// Output: true
}
