package comm_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/gorun/gorun/comm"
)

// inWorld runs program as every rank of a world of size. The examples do so to be runnable: a program that gorun
// starts is one rank, and calls comm.Init with no options.
func inWorld(size int, program func(ctx context.Context, world *comm.Group) error) {
	store := comm.NewMemStore()
	var wg sync.WaitGroup
	for rank := range size {
		wg.Go(func() {
			ctx := context.Background()
			world, err := comm.Init(ctx, comm.WithStore(store), comm.WithRank(rank, size))
			if err != nil {
				fmt.Println(err)
				return
			}
			defer world.Close()
			if err := program(ctx, world); err != nil {
				fmt.Println(err)
			}
		})
	}
	wg.Wait()
}

func ExampleAllReduce() {
	inWorld(4, func(ctx context.Context, world *comm.Group) error {
		loss := []float64{float64(world.Rank())}
		if err := comm.AllReduce(ctx, world, loss, comm.Avg); err != nil {
			return err
		}
		if world.Rank() == 0 {
			fmt.Println("mean loss:", loss[0])
		}
		return nil
	})
	// Output: mean loss: 1.5
}

func ExampleReduce() {
	inWorld(3, func(ctx context.Context, world *comm.Group) error {
		seen := []int{10 * (world.Rank() + 1)}
		if err := comm.Reduce(ctx, world, seen, comm.Sum, 0); err != nil {
			return err
		}
		if world.Rank() == 0 {
			fmt.Println("samples seen:", seen[0])
		}
		return nil
	})
	// Output: samples seen: 60
}

func ExampleBroadcast() {
	inWorld(3, func(ctx context.Context, world *comm.Group) error {
		weights := make([]float32, 2)
		if world.Rank() == 0 {
			weights = []float32{0.5, 0.25}
		}
		if err := comm.Broadcast(ctx, world, weights, 0); err != nil {
			return err
		}
		if world.Rank() == 2 {
			fmt.Println("rank 2 has", weights)
		}
		return nil
	})
	// Output: rank 2 has [0.5 0.25]
}

func ExampleAllGather() {
	inWorld(3, func(ctx context.Context, world *comm.Group) error {
		all := make([]int, world.Size())
		if err := comm.AllGather(ctx, world, all, []int{world.Rank() * world.Rank()}); err != nil {
			return err
		}
		if world.Rank() == 1 {
			fmt.Println("squares:", all)
		}
		return nil
	})
	// Output: squares: [0 1 4]
}

func ExampleReduceScatter() {
	inWorld(2, func(ctx context.Context, world *comm.Group) error {
		mine := make([]int, 2)
		if err := comm.ReduceScatter(ctx, world, mine, []int{1, 2, 3, 4}, comm.Sum); err != nil {
			return err
		}
		if world.Rank() == 1 {
			fmt.Println("rank 1 has", mine)
		}
		return nil
	})
	// Output: rank 1 has [6 8]
}

func ExampleSend() {
	inWorld(2, func(ctx context.Context, world *comm.Group) error {
		if world.Rank() == 0 {
			return comm.Send(ctx, world, []float32{0.5}, 1)
		}
		x := []float32{0}
		_, err := comm.Recv(ctx, world, x, 0)
		fmt.Println("rank 1 got", x[0])
		return err
	})
	// Output: rank 1 got 0.5
}

func ExampleISend() {
	inWorld(2, func(ctx context.Context, world *comm.Group) error {
		peer := 1 - world.Rank()
		out, in := []int{world.Rank()}, []int{-1}
		send, recv := comm.ISend(world, out, peer), comm.IRecv(world, in, peer)
		for _, work := range []*comm.Work{send, recv} {
			if err := work.Wait(ctx); err != nil {
				return err
			}
		}
		if world.Rank() == 0 {
			fmt.Println("rank 0 got", in[0])
		}
		return nil
	})
	// Output: rank 0 got 1
}

func ExampleIRecv() {
	inWorld(2, func(ctx context.Context, world *comm.Group) error {
		if world.Rank() == 0 {
			return comm.Send(ctx, world, []int{1, 2, 3}, 1, 9)
		}
		work := comm.IRecv(world, make([]int, 10), comm.AnySource, comm.AnyTag)
		// ... compute ...
		if err := work.Wait(ctx); err != nil {
			return err
		}
		fmt.Printf("%+v\n", work.Status())
		return nil
	})
	// Output: {Source:0 Tag:9 Count:3}
}

func ExampleRecv() {
	inWorld(3, func(ctx context.Context, world *comm.Group) error {
		const tag = 7
		if world.Rank() != 0 {
			return comm.Send(ctx, world, make([]byte, world.Rank()), 0, tag)
		}
		total := 0
		for range world.Size() - 1 {
			buf := make([]byte, 100)
			status, err := comm.Recv(ctx, world, buf, comm.AnySource, tag)
			if err != nil {
				return err
			}
			total += status.Count
		}
		fmt.Println("received", total, "bytes")
		return nil
	})
	// Output: received 3 bytes
}

func ExampleBatch() {
	inWorld(4, func(ctx context.Context, world *comm.Group) error {
		next, previous := (world.Rank()+1)%world.Size(), (world.Rank()+world.Size()-1)%world.Size()
		in := []int{0}
		for _, work := range comm.Batch(
			comm.SendOp(world, []int{world.Rank()}, next),
			comm.RecvOp(world, in, previous),
		) {
			if err := work.Wait(ctx); err != nil {
				return err
			}
		}
		if world.Rank() == 0 {
			fmt.Println("rank 0 got", in[0])
		}
		return nil
	})
	// Output: rank 0 got 3
}

func ExampleNewGroup() {
	inWorld(4, func(ctx context.Context, world *comm.Group) error {
		odd, err := comm.NewGroup(ctx, world, []int{1, 3}) // every rank of world calls it
		if err != nil || odd == nil {                      // nil: this rank is not a member
			return err
		}
		sum := []int{world.Rank()}
		if err := comm.AllReduce(ctx, odd, sum, comm.Sum); err != nil {
			return err
		}
		if odd.Rank() == 0 {
			fmt.Printf("world rank %d is rank 0 of %d; the sum is %d\n", odd.WorldRank(0), odd.Size(), sum[0])
		}
		return nil
	})
	// Output: world rank 1 is rank 0 of 2; the sum is 4
}
