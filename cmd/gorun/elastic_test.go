package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"github.com/gorun/gorun/comm"
	"github.com/gorun/gorun/comm/elastic"
)

func init() {
	// counts: the ranks count to 20 together, and one of them kills itself at 7. Beside its rank the scripts say how it is different when it
	// has been started again.
	rankPrograms["counts"] = func(ctx context.Context, odd int) error {
		restarts, _ := strconv.Atoi(os.Getenv("TORCHELASTIC_RESTART_COUNT"))
		isNew := os.Getenv("RANK") == strconv.Itoa(odd) && restarts > 0
		n, length := 0, 10
		if isNew && os.Args[3] == "other-version" {
			length = 12
		}
		state, err := elastic.NewState(elastic.Value("n", &n), elastic.Slice("weights", make([]float64, length)))
		if err != nil {
			return err
		}
		return elastic.Run(ctx, state, func(ctx context.Context, world *comm.Group) error {
			fmt.Println("goes on at", n)
			for n < 20 {
				if n == 7 {
					if err := comm.Barrier(ctx, world); err != nil { // all have committed 7
						return err
					}
					if world.Rank() == odd && !isNew {
						_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
					}
				}
				if n == 9 && os.Args[3] == "own-error" {
					return errors.New("nine is enough")
				}
				n++
				if err := errors.Join(comm.Barrier(ctx, world), state.Commit()); err != nil {
					return err
				}
			}
			return nil
		})
	}
}
