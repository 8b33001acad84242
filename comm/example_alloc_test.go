package comm_test

import (
	"context"
	"fmt"

	"github.com/gorun/gorun/comm"
)

func ExampleAlloc() {
	inWorld(3, func(ctx context.Context, world *comm.Group) error {
		grads, err := comm.Alloc[float32](world, 100_000)
		if err != nil {
			return err
		}
		for i := range grads { // the backward pass
			grads[i] = float32(world.Rank())
		}
		layer := grads[:40_000] // parts are as good as the whole
		if err := comm.AllReduce(ctx, world, layer, comm.Sum); err != nil {
			return err
		}
		if world.Rank() == 2 {
			fmt.Println(layer[0], layer[39_999], grads[40_000])
		}
		return nil
	})
	// Output: 3 3 2
}

func ExampleFree() {
	inWorld(1, func(_ context.Context, world *comm.Group) error {
		buf, err := comm.Alloc[int](world, 1000)
		if err != nil {
			return err
		}
		fmt.Println(comm.Free(world, buf)) // as MemFree(buf)
		return nil
	})
	// Output: <nil>
}

func ExampleMemFree() {
	inWorld(2, func(ctx context.Context, world *comm.Group) error {
		for _, n := range []int{1000, 2000} { // the step needs buffers of different lengths
			all, err := comm.Alloc[int](world, 2*n)
			if err != nil {
				return err
			}
			mine := all[world.Rank()*n:][:n]
			mine[0] = n + world.Rank()
			if err := comm.AllGather(ctx, world, all, mine); err != nil {
				return err
			}
			if world.Rank() == 0 {
				fmt.Println(all[0], all[n])
			}
			if err := comm.MemFree(all); err != nil {
				return err
			}
		}
		return nil
	})
	// Output:
	// 1000 1001
	// 2000 2001
}
