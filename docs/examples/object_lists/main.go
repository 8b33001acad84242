// Object lists: values of any type travel between ranks, from one to all, from all to all, from all to one, from one to
// each, and from one to another.
//
//	gorun --nproc-per-node 4 ./docs/examples/object_lists
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/gorun/gorun/comm"
)

// A shard is a part of the work.
type shard struct {
	Files []string
	Seed  int
}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "object_lists:", err)
		os.Exit(comm.ExitCode(err))
	}
}

func run(ctx context.Context) error {
	world, err := comm.Init(ctx)
	if err != nil {
		return err
	}
	defer world.Close()
	if world.Size() != 4 {
		return fmt.Errorf("want 4 ranks, got %d: run with --nproc-per-node 4", world.Size())
	}
	rank := world.Rank()

	// Every element is a pointer: to a type that rank 0's value fits, or to any.
	var name string
	var number, table any
	if rank == 0 {
		name, number, table = "foo", 12, map[int]int{1: 2}
	}
	if err := comm.BroadcastObjects(ctx, world, []any{&name, &number, &table}, 0); err != nil {
		return err
	}
	fmt.Printf("rank %d has %v %v %v\n", rank, name, number, table)

	mine := []any{"foo", 12, map[int]int{1: 2}, []string{"of", "another", "size"}}[rank]
	all, err := comm.AllGatherObject(ctx, world, mine)
	if err != nil {
		return err
	}
	fmt.Printf("rank %d collected %v\n", rank, all)

	var shards []shard // matter only where they come from
	if rank == 3 {
		shards = []shard{{[]string{"a", "e"}, 1}, {[]string{"b"}, 2}, {nil, 3}, {[]string{"c", "d"}, 4}}
	}
	part, err := comm.ScatterObject(ctx, world, shards, 3)
	if err != nil {
		return err
	}
	sizes, err := comm.GatherObject(ctx, world, map[int]int{part.Seed: len(part.Files)}, 2)
	if err != nil {
		return err
	}
	if rank == 2 {
		fmt.Printf("rank 2 gathered files by seed: %v\n", sizes)
	}

	switch rank {
	case 0:
		return comm.SendObjects(ctx, world, []any{part, "from rank 0"}, 1)
	case 1:
		var note string
		status, err := comm.RecvObjects(ctx, world, []any{&part, &note}, comm.AnySource)
		if err != nil {
			return err
		}
		fmt.Printf("rank 1 received %d objects of rank %d: %v %q\n", status.Count, status.Source, part, note)
	}
	return nil
}
