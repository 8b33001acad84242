package elastic

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gorun/gorun/comm"
)

// TestCommitDuringAnOperation: a copy of a variable to which an operation under way writes would have parts of its
// result, and to restore one that it reads would change what it sends.
func TestCommitDuringAnOperation(t *testing.T) {
	onTransports(t, func(t *testing.T, transport string) {
		turn := make(chan struct{})
		wantNoErrors(t, runJob(t, transport, 2, func(run runFunc) error {
			vector := make([]int32, 100_000)
			s, err := NewState(Slice("vector", vector))
			if err != nil {
				return err
			}
			return run(s, func(ctx context.Context, world *comm.Group) error {
				part, err := comm.NewGroup(ctx, world, []int{0, 1})
				if err != nil {
					return err
				}
				if world.Rank() == 1 {
					<-turn
					err := comm.AllReduce(ctx, world, vector, comm.Sum)
					<-turn
					return errors.Join(err, comm.Send(ctx, part, vector[:10], 0, 1), s.Commit())
				}
				during := func(w *comm.Work, name string) (errs error) {
					for _, f := range []func() error{s.Commit, s.Restore} {
						if err := f(); comm.ExitCode(err) != 2 || !strings.HasSuffix(err.Error(), name+" is under way: wait for its Work first") {
							errs = errors.Join(errs, fmt.Errorf("%w: with %v", errOwn, err))
						}
					}
					turn <- struct{}{}
					return errors.Join(errs, w.Wait(ctx))
				}
				return errors.Join(
					during(comm.IAllReduce(world, vector, comm.Sum), "AllReduce #4"),
					during(comm.IRecv(part, vector[:10], 1, 1), "Recv #1 (tag 1)"),
					s.Commit(), s.Restore(),
				)
			})
		}))
	})
}
