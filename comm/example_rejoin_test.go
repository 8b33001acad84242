package comm_test

import (
	"context"
	"errors"
	"log"

	"github.com/gorun/gorun/comm"
)

// A worker of gorun --on-failure=replace, which outlives the failure of others.
func ExampleRejoin() {
	ctx, steps := context.Background(), 0
	train := func(world *comm.Group) error {
		newest := []int64{int64(steps)} // a new worker has done none
		if err := comm.AllReduce(ctx, world, newest, comm.Max); err != nil {
			return err
		}
		for steps = int(newest[0]); steps < 1000; steps++ {
			if err := comm.AllReduce(ctx, world, make([]float32, 1<<20), comm.Sum); err != nil {
				return err
			}
		}
		return nil
	}
	world, err := comm.Init(ctx)
	for {
		if err == nil {
			err = train(world)
		}
		var (
			died    *comm.PeerError         // or has left
			missing *comm.MissingRanksError // in Init or Rejoin
			aborted *comm.AbortError        // by a rank whose context has ended, for example
		)
		if !errors.As(err, &died) && !errors.As(err, &missing) && !errors.As(err, &aborted) && !errors.Is(err, comm.ErrRoundOver) {
			break
		}
		log.Print(err)
		world, err = comm.Rejoin(ctx)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// Ranks meet in a directory of their own choice, in each round.
func ExampleWithRoundStore() {
	world, err := comm.Init(context.Background(), comm.WithRoundStore(func(context.Context) (comm.Store, error) {
		return comm.NewFileStore("/shared/where-my-job-meets")
	}))
	if err != nil {
		log.Fatal(err)
	}
	defer world.Close()
}
