// Mesh: 6 ranks as 2 replicas of a model (dp) whose layer is split over 3 ranks (tp). One training step of y = w·x: the sum
// over the layer crosses the ranks of a replica, the mean of the gradients crosses the replicas.
//
//	gorun --nproc-per-node 6 ./docs/examples/mesh
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/gorun/gorun/comm"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "mesh:", err)
		os.Exit(comm.ExitCode(err))
	}
}

func run(ctx context.Context) error {
	world, err := comm.Init(ctx)
	if err != nil {
		return err
	}
	defer world.Close()
	mesh, err := comm.NewMesh(ctx, world, []int{2, 3}, "dp", "tp")
	if err != nil {
		return err
	}
	dp, tp := mesh.Group("dp"), mesh.Group("tp")

	// The layer has 6 weights, 1 to 6, of which this rank has 2. Each replica has an example of its own.
	w := []float64{float64(2*tp.Rank() + 1), float64(2*tp.Rank() + 2)}
	x := []float64{float64(1 + dp.Rank()), 1}

	// Forward: each rank of a replica multiplies its part.
	y := []float64{w[0]*x[0] + w[1]*x[1]}
	if err := comm.AllReduce(ctx, tp, y, comm.Sum); err != nil {
		return err
	}
	// Backward: the gradient of y²/2, averaged over the examples.
	gradient := []float64{y[0] * x[0], y[0] * x[1]}
	if err := comm.AllReduce(ctx, dp, gradient, comm.Avg); err != nil {
		return err
	}
	fmt.Printf("rank %d at %v: dp %v, tp %v, y %v, gradient %v\n",
		world.Rank(), mesh.Coordinate(), dp.Ranks(), tp.Ranks(), y[0], gradient)
	return nil
}
