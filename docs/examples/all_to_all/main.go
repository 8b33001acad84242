// All-to-all with uneven parts: every rank gives every other another number of elements, as an exchange of tokens between
// experts does.
//
//	gorun --nproc-per-node 4 ./docs/examples/all_to_all
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/gorun/gorun/comm"
)

// counts[r][s] is how many elements rank r gives to rank s.
var counts = [][]int{
	{2, 2, 1, 1},
	{3, 2, 2, 2},
	{2, 1, 1, 1},
	{2, 2, 2, 1},
}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "all_to_all:", err)
		os.Exit(comm.ExitCode(err))
	}
}

func run(ctx context.Context) error {
	world, err := comm.Init(ctx)
	if err != nil {
		return err
	}
	defer world.Close()
	if world.Size() != len(counts) {
		return fmt.Errorf("want %d ranks, got %d: run with --nproc-per-node %d", len(counts), world.Size(), len(counts))
	}
	give := counts[world.Rank()]
	var in []int
	for i := range sum(give) {
		in = append(in, 10*world.Rank()+i)
	}
	// A rank knows what it gives. What it gets, the others tell it.
	get := make([]int, world.Size())
	if err := comm.AllToAll(ctx, world, get, give); err != nil {
		return err
	}
	out := make([]int, sum(get))
	if err := comm.AllToAllV(ctx, world, out, get, in, give); err != nil {
		return err
	}
	fmt.Printf("rank %d gave %v in parts of %v and got %v\n", world.Rank(), in, give, out)
	return nil
}

func sum(counts []int) (total int) {
	for _, n := range counts {
		total += n
	}
	return total
}
