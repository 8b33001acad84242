// By_hand: broadcast, reduce, all-gather and reduce-scatter built from nothing but Send and Recv, each checked
// against the library's own. They are written to be read; the library's use better algorithms.
//
//	gorun --nproc-per-node 4 ./docs/examples/by_hand
package main

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/gorun/gorun/comm"
)

const (
	root  = 1
	block = 3 // elements per rank
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "by_hand:", err)
		os.Exit(comm.ExitCode(err))
	}
}

func run(ctx context.Context) error {
	world, err := comm.Init(ctx)
	if err != nil {
		return err
	}
	defer world.Close()
	whole := block * world.Size()
	for _, c := range []struct {
		name             string
		in, out          int // elements
		byHand, theirOwn func(out, in []int) error
	}{
		{
			"broadcast", block, block,
			func(out, in []int) error { copy(out, in); return broadcast(ctx, world, out) },
			func(out, in []int) error { copy(out, in); return comm.Broadcast(ctx, world, out, root) },
		},
		{
			"reduce", block, block,
			func(out, in []int) error { copy(out, in); return reduce(ctx, world, out) },
			func(out, in []int) error { copy(out, in); return comm.Reduce(ctx, world, out, comm.Sum, root) },
		},
		{
			"all-gather", block, whole,
			func(out, in []int) error { return allGather(ctx, world, out, in) },
			func(out, in []int) error { return comm.AllGather(ctx, world, out, in) },
		},
		{
			"reduce-scatter", whole, block,
			func(out, in []int) error { return reduceScatter(ctx, world, out, in) },
			func(out, in []int) error { return comm.ReduceScatter(ctx, world, out, in, comm.Sum) },
		},
	} {
		in := make([]int, c.in)
		for i := range in {
			in[i] = 10*world.Rank() + i
		}
		got, want := make([]int, c.out), make([]int, c.out)
		if err := c.byHand(got, in); err != nil {
			return fmt.Errorf("%s by hand: %w", c.name, err)
		}
		if err := c.theirOwn(want, in); err != nil {
			return err
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("%s: by hand %v, the library's %v", c.name, got, want)
		}
		fmt.Printf("rank %d: %s by hand is the library's: %v\n", world.Rank(), c.name, got)
	}
	return comm.Barrier(ctx, world)
}

// broadcast copies buf of root to all: root sends to each.
func broadcast(ctx context.Context, g *comm.Group, buf []int) error {
	if g.Rank() != root {
		_, err := comm.Recv(ctx, g, buf, root)
		return err
	}
	for r := range g.Size() {
		if r != root {
			if err := comm.Send(ctx, g, buf, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// reduce sums buf of all ranks into buf of root: each sends to root, which adds.
func reduce(ctx context.Context, g *comm.Group, buf []int) error {
	if g.Rank() != root {
		return comm.Send(ctx, g, buf, root)
	}
	arrived := make([]int, len(buf))
	for r := range g.Size() {
		if r == root {
			continue
		}
		if _, err := comm.Recv(ctx, g, arrived, r); err != nil {
			return err
		}
		for i := range buf {
			buf[i] += arrived[i]
		}
	}
	return nil
}

// allGather collects in of all ranks in out: each sends to each, also to itself.
func allGather(ctx context.Context, g *comm.Group, out, in []int) error {
	var sends []*comm.Work
	for r := range g.Size() {
		sends = append(sends, comm.ISend(g, in, r))
	}
	for r := range g.Size() {
		if _, err := comm.Recv(ctx, g, out[r*len(in):(r+1)*len(in)], r); err != nil {
			return err
		}
	}
	return waitAll(ctx, sends)
}

// reduceScatter sums in of all ranks and leaves block r of it in out of rank r: each block goes to its owner, which
// adds.
func reduceScatter(ctx context.Context, g *comm.Group, out, in []int) error {
	var sends []*comm.Work
	for r := range g.Size() {
		sends = append(sends, comm.ISend(g, in[r*len(out):(r+1)*len(out)], r))
	}
	arrived := make([]int, len(out))
	for r := range g.Size() {
		if _, err := comm.Recv(ctx, g, arrived, r); err != nil {
			return err
		}
		for i := range out {
			out[i] += arrived[i]
		}
	}
	return waitAll(ctx, sends)
}

func waitAll(ctx context.Context, works []*comm.Work) error {
	for _, work := range works {
		if err := work.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}
