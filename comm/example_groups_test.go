package comm_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/gorun/gorun/comm"
)

// Only the members call it, whatever the other ranks do.
func ExampleNewGroupOf() {
	inWorld(4, func(ctx context.Context, world *comm.Group) error {
		if world.Rank() == 0 {
			return nil
		}
		workers, err := comm.NewGroupOf(ctx, world, []int{1, 2, 3}, "workers")
		if err != nil {
			return err
		}
		sum := []int{world.Rank()}
		if err := comm.AllReduce(ctx, workers, sum, comm.Sum); err != nil {
			return err
		}
		if workers.Rank() == 0 {
			fmt.Println(sum[0])
		}
		return nil
	})
	// Output: 6
}

func ExampleSplit() {
	inWorld(4, func(ctx context.Context, world *comm.Group) error {
		// Even ranks and odd ranks, the highest rank first.
		group, err := comm.Split(ctx, world, world.Rank()%2, -world.Rank())
		if err != nil {
			return err
		}
		if world.Rank() == 3 {
			fmt.Println(group.Ranks(), "and this is rank", group.Rank())
		}
		return nil
	})
	// Output: [3 1] and this is rank 0
}

// Errors name ranks of the world, calls those of a group.
func ExampleGroup_GroupRank() {
	inWorld(4, func(ctx context.Context, world *comm.Group) error {
		odd, err := comm.NewGroup(ctx, world, []int{3, 1})
		if err != nil || odd == nil {
			return err
		}
		if odd.Rank() == 0 {
			fmt.Println(odd, odd.GroupRank(1), odd.GroupRank(2), odd.WorldRank(0))
		}
		return nil
	})
	// Output: group [3 1] 1 -1 3
}

func ExampleNewMesh() {
	inWorld(8, func(ctx context.Context, world *comm.Group) error {
		mesh, err := comm.NewMesh(ctx, world, []int{2, 4}, "dp", "tp")
		if err != nil {
			return err
		}
		activation, gradient := []float32{1}, []float32{1}
		err = errors.Join(
			comm.AllReduce(ctx, mesh.Group("tp"), activation, comm.Sum), // within a replica of the model
			comm.AllReduce(ctx, mesh.Group("dp"), gradient, comm.Sum))   // between the replicas
		if world.Rank() == 6 {
			fmt.Println(mesh.Coordinate(), mesh.Group("dp").Ranks(), mesh.Group("tp").Ranks(), activation, gradient)
		}
		return err
	})
	// Output: [1 2] [2 6] [4 5 6 7] [4] [2]
}

func ExampleMesh_Slice() {
	inWorld(8, func(ctx context.Context, world *comm.Group) error {
		mesh, err := comm.NewMesh(ctx, world, []int{2, 2, 2}, "pp", "dp", "tp")
		if err != nil {
			return err
		}
		stage, err := mesh.Slice("dp", "tp")
		if err != nil {
			return err
		}
		if world.Rank() == 5 {
			fmt.Println(stage.Names(), stage.Shape(), stage.Coordinate())
		}
		return nil
	})
	// Output: [dp tp] [2 2] [0 1]
}

func ExampleMesh_Flatten() {
	inWorld(8, func(ctx context.Context, world *comm.Group) error {
		mesh, err := comm.NewMesh(ctx, world, []int{2, 2, 2}, "pp", "dp", "tp")
		if err != nil {
			return err
		}
		stage, err := mesh.Slice("dp", "tp")
		if err != nil {
			return err
		}
		group, err := stage.Flatten()
		if err != nil {
			return err
		}
		loss := []int{world.Rank()}
		err = comm.AllReduce(ctx, group, loss, comm.Sum)
		if world.Rank() == 5 {
			fmt.Println(group.Ranks(), loss)
		}
		return err
	})
	// Output: [4 5 6 7] [22]
}
