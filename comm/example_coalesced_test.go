package comm_test

import (
	"context"
	"fmt"

	"github.com/gorun/gorun/comm"
)

func ExampleAllReduceCoalesced() {
	inWorld(2, func(ctx context.Context, world *comm.Group) error {
		weight, bias := []float32{1, 2, 3, 4}, []float32{5}
		err := comm.AllReduceCoalesced(ctx, world, [][]float32{weight, bias}, comm.Sum)
		if world.Rank() == 0 {
			fmt.Println(weight, bias)
		}
		return err
	})
	// Output: [2 4 6 8] [10]
}

func ExampleIAllReduceCoalesced() {
	inWorld(2, func(ctx context.Context, world *comm.Group) error {
		weight, bias := []float32{1, 2, 3, 4}, []float32{5}
		work := comm.IAllReduceCoalesced(world, [][]float32{weight, bias}, comm.Avg)
		// ... compute ...
		err := work.Wait(ctx)
		if world.Rank() == 0 {
			fmt.Println(weight, bias)
		}
		return err
	})
	// Output: [1 2 3 4] [5]
}

func ExampleNewBucketer() {
	inWorld(2, func(ctx context.Context, world *comm.Group) error {
		buckets := comm.NewBucketer[float32](world, comm.Avg, 1<<20, 25<<20) // as DDP: a small bucket first
		layers := [][]float32{{1, 2}, {3}, {4, 5, 6}}
		for step := range 2 {
			for i := len(layers) - 1; i >= 0; i-- { // as the backward pass gets to them
				for j := range layers[i] {
					layers[i][j] = float32(step + world.Rank())
				}
				buckets.Add(layers[i])
			}
			if err := buckets.Flush(ctx); err != nil {
				return err
			}
		}
		if world.Rank() == 0 {
			fmt.Println(layers)
		}
		return nil
	})
	// Output: [[1.5 1.5] [1.5] [1.5 1.5 1.5]]
}
