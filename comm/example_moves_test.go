package comm_test

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/gorun/gorun/comm"
)

func ExampleBarrier() {
	var ready atomic.Int32
	inWorld(3, func(ctx context.Context, world *comm.Group) error {
		ready.Add(1) // what this rank has to do first
		if err := comm.Barrier(ctx, world); err != nil {
			return err
		}
		if world.Rank() == 0 {
			fmt.Println("ranks ready:", ready.Load())
		}
		return nil
	})
	// Output: ranks ready: 3
}

func ExampleAllGatherV() {
	inWorld(3, func(ctx context.Context, world *comm.Group) error {
		all := [][]int{make([]int, 1), make([]int, 2), make([]int, 3)} // every rank knows how much each of them has
		mine := all[world.Rank()]
		for i := range mine {
			mine[i] = world.Rank()
		}
		if err := comm.AllGatherV(ctx, world, all, mine); err != nil {
			return err
		}
		if world.Rank() == 0 {
			fmt.Println(all)
		}
		return nil
	})
	// Output: [[0] [1 1] [2 2 2]]
}

func ExampleGather() {
	inWorld(3, func(ctx context.Context, world *comm.Group) error {
		var all []int
		if world.Rank() == 0 { // the others need no room
			all = make([]int, world.Size())
		}
		if err := comm.Gather(ctx, world, all, []int{10 * world.Rank()}, 0); err != nil {
			return err
		}
		if world.Rank() == 0 {
			fmt.Println(all)
		}
		return nil
	})
	// Output: [0 10 20]
}

func ExampleGatherV() {
	inWorld(3, func(ctx context.Context, world *comm.Group) error {
		mine := make([]byte, world.Rank()) // rank 0 has nothing
		for i := range mine {
			mine[i] = 'a' + byte(world.Rank())
		}
		var all [][]byte
		if world.Rank() == 0 {
			all = [][]byte{nil, make([]byte, 1), make([]byte, 2)}
		}
		if err := comm.GatherV(ctx, world, all, mine, 0); err != nil {
			return err
		}
		if world.Rank() == 0 {
			fmt.Printf("%s\n", all)
		}
		return nil
	})
	// Output: [ b cc]
}

func ExampleScatter() {
	inWorld(2, func(ctx context.Context, world *comm.Group) error {
		var batch []float64
		if world.Rank() == 0 {
			batch = []float64{1, 2, 3, 4}
		}
		mine := make([]float64, 2)
		if err := comm.Scatter(ctx, world, mine, batch, 0); err != nil {
			return err
		}
		if world.Rank() == 1 {
			fmt.Println("rank 1 works on", mine)
		}
		return nil
	})
	// Output: rank 1 works on [3 4]
}

func ExampleScatterV() {
	inWorld(3, func(ctx context.Context, world *comm.Group) error {
		var parts [][]int
		if world.Rank() == 0 {
			parts = [][]int{{1}, {2, 3}, {4, 5, 6}}
		}
		mine := make([]int, world.Rank()+1) // every rank knows how much it gets
		if err := comm.ScatterV(ctx, world, mine, parts, 0); err != nil {
			return err
		}
		if world.Rank() == 2 {
			fmt.Println("rank 2 has", mine)
		}
		return nil
	})
	// Output: rank 2 has [4 5 6]
}

func ExampleAllToAll() {
	inWorld(3, func(ctx context.Context, world *comm.Group) error {
		r := world.Rank()
		row := []int{10 * r, 10*r + 1, 10*r + 2} // of a matrix that is to be transposed
		column := make([]int, len(row))
		if err := comm.AllToAll(ctx, world, column, row); err != nil {
			return err
		}
		if r == 1 {
			fmt.Println("column 1:", column)
		}
		return nil
	})
	// Output: column 1: [1 11 21]
}

func ExampleAllToAllV() {
	inWorld(2, func(ctx context.Context, world *comm.Group) error {
		// Rank 0 has 1 token for rank 0 and 2 for rank 1; rank 1 has 3 for rank 0 and none for itself.
		tokens, to := [][]int{{100, 101, 102}, {200, 201, 202}}, [][]int{{1, 2}, {3, 0}}
		from := [][]int{{1, 3}, {2, 0}}
		r := world.Rank()
		got := make([]int, from[r][0]+from[r][1])
		if err := comm.AllToAllV(ctx, world, got, from[r], tokens[r], to[r]); err != nil {
			return err
		}
		if r == 0 {
			fmt.Println("rank 0 has", got)
		}
		return nil
	})
	// Output: rank 0 has [100 200 201 202]
}

func ExampleAllToAllW() {
	inWorld(2, func(ctx context.Context, world *comm.Group) error {
		r := world.Rank()
		letters := [][]byte{[]byte(fmt.Sprint("from ", r)), []byte("hello")} // to ranks 0 and 1
		got := [][]byte{make([]byte, len(letters[r])), make([]byte, len(letters[r]))}
		if err := comm.AllToAllW(ctx, world, got, letters); err != nil {
			return err
		}
		if r == 0 {
			fmt.Printf("rank 0 has %q\n", got)
		}
		return nil
	})
	// Output: rank 0 has ["from 0" "from 1"]
}
