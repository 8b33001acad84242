package elastic

import (
	"context"
	"errors"
	"fmt"
	"strings"
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
