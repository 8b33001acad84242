package elastic

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

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

// TestCommitBesideWhatIsOnlyRead: an operation that only reads a variable on this rank matters to Restore, which would change what it sends.
func TestCommitBesideWhatIsOnlyRead(t *testing.T) {
	onTransports(t, func(t *testing.T, transport string) {
		turn := make(chan string)
		wantNoErrors(t, runJob(t, transport, 2, func(run runFunc) error {
			vector := make([]int32, 1_000_000)
			s, err := NewState(Slice("vector", vector))
			if err != nil {
				return err
			}
			return run(s, func(ctx context.Context, world *comm.Group) error {
				if world.Rank() == 1 {
					buf := make([]int32, 2_000_000)
					half := buf[1_000_000:]
					for name := range turn {
						switch name {
						case "Broadcast":
							err = comm.Broadcast(ctx, world, half, 0)
						case "Reduce":
							err = comm.Reduce(ctx, world, half, comm.Sum, 1)
						case "Gather":
							err = comm.Gather(ctx, world, buf, half, 1)
						case "Send":
							_, err = comm.Recv(ctx, world, half, 0)
						}
						if err != nil {
							return err
						}
					}
					return nil
				}
				for name, start := range map[string]func() *comm.Work{
					"Broadcast": func() *comm.Work { return comm.IBroadcast(world, vector, 0) },
					"Reduce":    func() *comm.Work { return comm.IReduce(world, vector, comm.Sum, 1) },
					"Gather":    func() *comm.Work { return comm.IGather(world, nil, vector, 1) },
					"Send":      func() *comm.Work { return comm.ISend(world, vector, 1) },
				} {
					w := start()
					err := s.Commit()
					restored := s.Restore()
					turn <- name
					if err := errors.Join(err, w.Wait(ctx), s.Restore()); err != nil {
						return err
					}
					if restored == nil && transport == "tcp" && name != "Send" { // what it sends is on its way
						continue
					}
					if restored == nil || !strings.HasSuffix(restored.Error(), name+` is under way, and reads "vector" (int32 × 1000000): wait for its Work first`) {
						t.Errorf("Restore during %s: %v", name, restored)
					}
				}
				close(turn)
				return nil
			})
		}))
	})
}

// TestCommitNoticesAllOperations: also if another goroutine starts operations on other memory at the same time.
func TestCommitNoticesAllOperations(t *testing.T) {
	const rounds = 5000
	turn := make(chan struct{})
	wantNoErrors(t, runJob(t, "shm", 2, func(run runFunc) error {
		vector := make([]int32, 100)
		s, err := NewState(Slice("vector", vector))
		if err != nil {
			return err
		}
		return run(s, func(ctx context.Context, world *comm.Group) error {
			alone, err := comm.NewGroup(ctx, world, []int{0})
			if err != nil {
				return err
			}
			if world.Rank() == 1 {
				for range turn {
					if err := comm.AllReduce(ctx, world, vector, comm.Sum); err != nil {
						return err
					}
				}
				return nil
			}
			stop := make(chan struct{})
			var other sync.WaitGroup
			other.Go(func() {
				for buf := make([]byte, 8); ; {
					select {
					case <-stop:
						return
					default:
						if err := comm.IAllReduce(alone, buf, comm.Sum).Wait(ctx); err != nil {
							t.Error(err)
							return
						}
					}
				}
			})
			defer other.Wait()
			defer close(stop)
			defer close(turn)
			missed := 0
			for range rounds {
				w := comm.IAllReduce(world, vector, comm.Sum)
				if s.Commit() == nil {
					missed++
				}
				turn <- struct{}{}
				if err := w.Wait(ctx); err != nil {
					return err
				}
			}
			if missed > 0 {
				t.Errorf("%d of %d commits have not noticed the operation", missed, rounds)
			}
			return nil
		})
	}))
}

// TestOperationsThatHaveEndedKeepNoBuffers alive, though they have been recorded.
func TestOperationsThatHaveEndedKeepNoBuffers(t *testing.T) {
	if _, err := NewState(); err != nil {
		t.Fatal(err)
	}
	for name, start := range map[string]func(g *comm.Group, buf []byte) *comm.Work{
		"IAllReduce": func(g *comm.Group, buf []byte) *comm.Work { return comm.IAllReduce(g, buf, comm.Sum) },
		"ISend, IRecv": func(g *comm.Group, buf []byte) *comm.Work {
			if g.Rank() == 1 {
				return comm.ISend(g, buf, 0)
			}
			return comm.IRecv(g, buf, 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			wantNoErrors(t, inWorld(t, "shm", 2, func(ctx context.Context, world *comm.Group) error {
				freed := make(chan struct{}, 20)
				for range cap(freed) {
					buf := make([]byte, 1<<20)
					runtime.AddCleanup(&buf[0], func(freed chan<- struct{}) { freed <- struct{}{} }, freed)
					if err := start(world, buf).Wait(ctx); err != nil {
						return err
					}
				}
				for deadline := time.Now().Add(10 * time.Second); len(freed) < cap(freed)/2; time.Sleep(time.Millisecond) {
					if runtime.GC(); time.Now().After(deadline) {
						t.Errorf("rank %d: %d of %d buffers have been freed", world.Rank(), len(freed), cap(freed))
						break
					}
				}
				return nil
			}))
		})
	}
}
