package elastic

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/gorun/gorun/comm"
)

// TestCommitDuringAnOperation: a copy of a variable to which an operation under way writes would have parts of its result. Operations on
// other memory do not matter.
func TestCommitDuringAnOperation(t *testing.T) {
	onTransports(t, func(t *testing.T, transport string) {
		checked := make(chan struct{})
		wantNoErrors(t, runJob(t, transport, 2, func(run runFunc) error {
			n, vector := 0, make([]int32, 100_000)
			s, err := NewState(Value("n", &n), Slice("vector", vector))
			if err != nil {
				return err
			}
			return run(s, func(ctx context.Context, world *comm.Group) error {
				if world.Rank() == 1 {
					<-checked
					return errors.Join(comm.Send(ctx, world, vector[:10], 0), comm.AllReduce(ctx, world, vector, comm.Sum), comm.Send(ctx, world, vector[:10], 0, 1),
						comm.Barrier(ctx, world), s.Commit())
				}
				during := func() (errs error) {
					for _, f := range []func() error{s.Commit, s.Restore} {
						if err := f(); comm.ExitCode(err) != 2 || !strings.HasSuffix(err.Error(), `is under way, and writes to "vector" (int32 × 100000): wait for its Work first`) {
							errs = errors.Join(errs, fmt.Errorf("%w: with %v", errOwn, err))
						}
					}
					return errs
				}
				other := comm.IRecv(world, make([]int32, 10), 1)
				if err := s.Commit(); err != nil {
					return err
				}
				sum := comm.IAllReduce(world, vector, comm.Sum)
				errs := during()
				received := comm.IRecv(world, vector[:10], 1, 1)
				errs = errors.Join(errs, during())
				close(checked)
				for _, w := range []*comm.Work{other, sum, received} {
					errs = errors.Join(errs, w.Wait(ctx))
				}
				return errors.Join(errs, comm.Barrier(ctx, world), s.Commit(), s.Restore())
			})
		}))
	})
}

// TestCommitDuringSends: an operation that does not write to a variable on this rank does not matter.
func TestCommitDuringSends(t *testing.T) {
	onTransports(t, func(t *testing.T, transport string) {
		checked := make(chan struct{})
		wantNoErrors(t, runJob(t, transport, 2, func(run runFunc) error {
			vector := make([]int32, 100_000)
			s, err := NewState(Slice("vector", vector))
			if err != nil {
				return err
			}
			return run(s, func(ctx context.Context, world *comm.Group) error {
				if world.Rank() == 1 {
					<-checked
					return errors.Join(comm.Broadcast(ctx, world, vector, 0), comm.Gather(ctx, world, make([]int32, 20), vector[:10], 1))
				}
				works := []*comm.Work{comm.IBroadcast(world, vector, 0), comm.IGather(world, vector, vector[:10], 1)}
				err := s.Commit()
				close(checked)
				for _, w := range works {
					err = errors.Join(err, w.Wait(ctx))
				}
				return err
			})
		}))
	})
}

// TestOperationsOfTwoGroups: goroutines may start operations on different groups at the same time.
func TestOperationsOfTwoGroups(t *testing.T) {
	wantNoErrors(t, runJob(t, "shm", 2, func(run runFunc) error {
		s, _ := newCounter(t)
		return run(s, func(ctx context.Context, world *comm.Group) error {
			var working sync.WaitGroup
			errs := make([]error, 2)
			for i := range errs {
				g, err := comm.NewGroup(ctx, world, []int{0, 1})
				if err != nil {
					return err
				}
				working.Go(func() {
					var works []*comm.Work
					for range 300 {
						works = append(works, comm.IAllReduce(g, make([]int32, 1), comm.Sum))
					}
					for _, w := range works {
						errs[i] = errors.Join(errs[i], w.Wait(ctx))
					}
				})
			}
			working.Wait()
			return errors.Join(errs...)
		})
	}))
}
