package comm_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gorun/gorun/comm"
)

func ExampleWork() {
	inWorld(2, func(ctx context.Context, world *comm.Group) error {
		in := []int{0}
		recv := comm.IRecv(world, in, comm.AnySource, comm.AnyTag)
		send := comm.ISend(world, []int{10 * world.Rank()}, 1-world.Rank(), 7)
		<-recv.Done() // or select among several
		if err := errors.Join(recv.Err(), send.Wait(ctx)); err != nil {
			return err
		}
		if world.Rank() == 0 {
			fmt.Println(in[0], "from rank", recv.Status().Source, "with tag", recv.Status().Tag)
		}
		return nil
	})
	// Output: 10 from rank 1 with tag 7
}

// A wait of a limited time leaves the operation alone.
func ExampleWork_WaitFor() {
	inWorld(2, func(ctx context.Context, world *comm.Group) error {
		if world.Rank() == 1 {
			return errors.Join(comm.Barrier(ctx, world), comm.Send(ctx, world, []int{7}, 0))
		}
		in := []int{0}
		recv := comm.IRecv(world, in, 1)
		done, err := recv.WaitFor(10 * time.Millisecond)
		fmt.Println(done, err)
		if err := comm.Barrier(ctx, world); err != nil {
			return err
		}
		done, err = recv.WaitFor(time.Minute)
		fmt.Println(done, err, in)
		return nil
	})
	// Output:
	// false <nil>
	// true <nil> [7]
}

func ExampleGroup_Pending() {
	inWorld(2, func(ctx context.Context, world *comm.Group) error {
		if world.Rank() == 1 {
			return errors.Join(comm.Barrier(ctx, world), comm.Send(ctx, world, []int{7}, 0, 0))
		}
		recv := comm.IRecv(world, []int{0}, 1, 0)
		fmt.Println("before:", len(world.Pending()))
		if err := errors.Join(comm.Barrier(ctx, world), recv.Wait(ctx)); err != nil {
			return err
		}
		fmt.Println("after:", len(world.Pending()))
		return nil
	})
	// Output:
	// before: 1
	// after: 0
}
