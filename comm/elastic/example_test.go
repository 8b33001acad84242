package elastic_test

import (
	"context"
	"fmt"

	"github.com/gorun/gorun/comm"
	"github.com/gorun/gorun/comm/elastic"
)

// A program that gorun starts passes no options to Run. Here there is one rank, to be runnable.
func ExampleRun() {
	step, weights := 0, make([]float32, 4)
	state, err := elastic.NewState(
		elastic.Value("step", &step),
		elastic.Slice("weights", weights),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	err = elastic.Run(context.Background(), state, func(ctx context.Context, world *comm.Group) error {
		for step < 20 {
			gradient := []float32{1, 2, 3, 4} // of this rank's part of the data
			if err := comm.AllReduce(ctx, world, gradient, comm.Avg); err != nil {
				return err
			}
			for i, g := range gradient {
				weights[i] -= g / 4
			}
			step++ // before the commit, which has done this step
			if step%10 == 0 {
				if err := state.Commit(); err != nil {
					return err
				}
			}
		}
		return nil
	}, comm.WithStore(comm.NewMemStore()), comm.WithRank(0, 1))
	fmt.Println(step, weights, err)
	// Output: 20 [-5 -10 -15 -20] <nil>
}

func ExampleState_Restore() {
	rate := 0.5
	state, err := elastic.NewState(elastic.Value("rate", &rate))
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := state.Commit(); err != nil {
		fmt.Println(err)
		return
	}
	rate *= 100 // that was too much
	if err := state.Restore(); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("commit", state.Commits(), "has rate", rate)
	// Output: commit 1 has rate 0.5
}
