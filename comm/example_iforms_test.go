package comm_test

import (
	"context"
	"fmt"

	"github.com/gorun/gorun/comm"
)

func ExampleIAllReduce() {
	inWorld(2, func(ctx context.Context, world *comm.Group) error {
		layers := [][]float32{{1, 2}, {3}, {4, 5, 6}}
		var works []*comm.Work
		for _, grads := range layers { // as the backward pass gets to them
			works = append(works, comm.IAllReduce(world, grads, comm.Sum))
		}
		for _, work := range works { // before the optimizer's step
			if err := work.Wait(ctx); err != nil {
				return err
			}
		}
		if world.Rank() == 0 {
			fmt.Println(layers)
		}
		return nil
	})
	// Output: [[2 4] [6] [8 10 12]]
}

func ExampleIReduce() {
	inWorld(3, func(ctx context.Context, world *comm.Group) error {
		longest := []float64{float64(world.Rank())}
		work := comm.IReduce(world, longest, comm.Max, 0)
		// ... compute ...
		if err := work.Wait(ctx); err != nil {
			return err
		}
		if world.Rank() == 0 {
			fmt.Println(longest[0])
		}
		return nil
	})
	// Output: 2
}

func ExampleIBroadcast() {
	inWorld(2, func(ctx context.Context, world *comm.Group) error {
		weights := []int{7 * (1 - world.Rank())}
		work := comm.IBroadcast(world, weights, 0)
		// ... compute ...
		if err := work.Wait(ctx); err != nil {
			return err
		}
		if world.Rank() == 1 {
			fmt.Println(weights[0])
		}
		return nil
	})
	// Output: 7
}

func ExampleIAllGather() {
	inWorld(3, func(ctx context.Context, world *comm.Group) error {
		ranks := make([]int, world.Size())
		work := comm.IAllGather(world, ranks, []int{world.Rank()})
		// ... compute ...
		if err := work.Wait(ctx); err != nil {
			return err
		}
		if world.Rank() == 0 {
			fmt.Println(ranks)
		}
		return nil
	})
	// Output: [0 1 2]
}

func ExampleIGather() {
	inWorld(3, func(ctx context.Context, world *comm.Group) error {
		ranks := make([]int, world.Size()) // matters only at rank 2
		work := comm.IGather(world, ranks, []int{world.Rank()}, 2)
		// ... compute ...
		if err := work.Wait(ctx); err != nil {
			return err
		}
		if world.Rank() == 2 {
			fmt.Println(ranks)
		}
		return nil
	})
	// Output: [0 1 2]
}

func ExampleIScatter() {
	inWorld(3, func(ctx context.Context, world *comm.Group) error {
		mine := []int{0}
		work := comm.IScatter(world, mine, []int{5, 6, 7}, 0) // the list matters only at rank 0
		// ... compute ...
		if err := work.Wait(ctx); err != nil {
			return err
		}
		if world.Rank() == 2 {
			fmt.Println(mine[0])
		}
		return nil
	})
	// Output: 7
}

func ExampleIReduceScatter() {
	inWorld(2, func(ctx context.Context, world *comm.Group) error {
		shard := []int{0}
		work := comm.IReduceScatter(world, shard, []int{1, 2}, comm.Sum)
		// ... compute ...
		if err := work.Wait(ctx); err != nil {
			return err
		}
		if world.Rank() == 1 {
			fmt.Println(shard[0])
		}
		return nil
	})
	// Output: 4
}

func ExampleIAllToAll() {
	inWorld(2, func(ctx context.Context, world *comm.Group) error {
		got := make([]int, 2)
		work := comm.IAllToAll(world, got, []int{10 * world.Rank(), 10*world.Rank() + 1})
		// ... compute ...
		if err := work.Wait(ctx); err != nil {
			return err
		}
		if world.Rank() == 0 {
			fmt.Println(got)
		}
		return nil
	})
	// Output: [0 10]
}

func ExampleIAllToAllV() {
	inWorld(2, func(ctx context.Context, world *comm.Group) error {
		// Everybody has two elements for rank 0 and none for rank 1.
		counts := [][]int{{2, 2}, {0, 0}}[world.Rank()]
		got := make([]int, counts[0]+counts[1])
		work := comm.IAllToAllV(world, got, counts, []int{world.Rank(), world.Rank()}, []int{2, 0})
		// ... compute ...
		if err := work.Wait(ctx); err != nil {
			return err
		}
		if world.Rank() == 0 {
			fmt.Println(got)
		}
		return nil
	})
	// Output: [0 0 1 1]
}

func ExampleIBarrier() {
	inWorld(3, func(ctx context.Context, world *comm.Group) error {
		everybodyIsHere := comm.IBarrier(world)
		select {
		case <-everybodyIsHere.Done():
		case <-ctx.Done():
			return ctx.Err()
		}
		if world.Rank() == 0 {
			fmt.Println("go")
		}
		return everybodyIsHere.Err()
	})
	// Output: go
}
