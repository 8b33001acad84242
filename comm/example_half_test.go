package comm_test

import (
	"context"
	"fmt"

	"github.com/gorun/gorun/comm"
)

// 2049 lies between two values of Float16, and goes to the even one.
func ExampleNewFloat16() {
	fmt.Println(comm.NewFloat16(2049).Float32())
	// Output: 2048
}

// BFloat16 has the range of float32, and eight bits of it.
func ExampleNewBFloat16() {
	fmt.Println(comm.NewBFloat16(3.14159).Float32(), comm.NewBFloat16(1<<100).Float32() == 1<<100)
	// Output: 3.140625 true
}

// A rank may send to itself, in a batch too.
func ExampleSendOp() {
	inWorld(1, func(ctx context.Context, world *comm.Group) error {
		in := []int{0}
		for _, work := range comm.Batch(comm.SendOp(world, []int{7}, 0, 1), comm.RecvOp(world, in, 0, 1)) {
			if err := work.Wait(ctx); err != nil {
				return err
			}
		}
		fmt.Println(in[0])
		return nil
	})
	// Output: 7
}

// Which rank sends, and with which tag, may be left open.
func ExampleRecvOp() {
	inWorld(3, func(ctx context.Context, world *comm.Group) error {
		if world.Rank() > 0 {
			return comm.Send(ctx, world, []int{world.Rank()}, 0, world.Rank())
		}
		a, b := []int{0}, []int{0}
		for _, work := range comm.Batch(
			comm.RecvOp(world, a, comm.AnySource, comm.AnyTag),
			comm.RecvOp(world, b, comm.AnySource, comm.AnyTag),
		) {
			<-work.Done()
			if err := work.Err(); err != nil {
				return err
			}
		}
		fmt.Println("sum:", a[0]+b[0])
		return nil
	})
	// Output: sum: 3
}
