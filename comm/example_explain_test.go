package comm_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/gorun/gorun/comm"
)

func ExampleExplain() {
	fmt.Print(comm.Explain("all_reduce", 1<<20))
	// Output:
	// all_reduce of 1048576 bytes, 2 ranks; no world is open
	// where they share memory (built in, 2 ranks, 1048576 bytes):
	//      up to  way            what
	//       2552  ll             low latency: data and flag in one or a few cache lines
	//   >    any  flat           every rank combines all, through slots
	//          -  shared         every rank combines its slice: reduce-scatter and all-gather through slots
	// by messages (built in, 2 ranks, 1048576 bytes):
	//      up to  way            what
	//       256K  doubling       recursive doubling: fewest steps, whole vectors
	//       512K  halving        recursive halving and doubling: fewest bytes, few steps
	//   >    any  ring           ring reduce-scatter and all-gather: fewest bytes, between neighbours only
	//          -  bidirectional  ring in both directions, with half of the vector each
	//          -  pairwise       pairwise exchange of whole vectors: one latency
}

func ExampleGroup_Explain() {
	inWorld(3, func(ctx context.Context, world *comm.Group) error {
		if world.Rank() == 0 {
			fmt.Println(strings.Contains(world.Explain("scan", 64), "recursive doubling, in order of rank"))
		}
		return comm.Barrier(ctx, world)
	})
	// Output: true
}

func ExampleParseTuning() {
	inWorld(4, func(ctx context.Context, world *comm.Group) error {
		// In this group every rank combines its slice of a sum, however short that is; between machines sums go round
		// the ring.
		tuning, err := comm.ParseTuning("all_reduce=shared; all_reduce=ring")
		if err != nil {
			return err
		}
		grads, err := comm.NewGroup(ctx, world, world.Ranks(), comm.WithTuning(tuning))
		if err != nil {
			return err
		}
		sum := []int{world.Rank()}
		if err := comm.AllReduce(ctx, grads, sum, comm.Sum); err != nil {
			return err
		}
		if world.Rank() == 0 {
			fmt.Println(sum)
		}
		return nil
	})
	// Output: [6]
}

func ExampleGroup_Ways() {
	inWorld(1, func(ctx context.Context, world *comm.Group) error {
		fmt.Println(world.Ways("all_reduce"))
		return nil
	})
	// Output: [doubling halving ring bidirectional pairwise]
}
