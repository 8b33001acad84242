package elastic

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gorun/gorun/comm"
)

var errOwn = errors.New("the program's own")

// newCounter returns a State of one number.
func newCounter(t testing.TB) (*State, *int) {
	n := new(int)
	s, err := NewState(Value("n", n))
	if err != nil {
		t.Fatal(err)
	}
	return s, n
}

// A oneWay can be encoded, and not decoded.
type oneWay struct{}

func (oneWay) MarshalBinary() ([]byte, error)     { return []byte{1}, nil }
func (*oneWay) UnmarshalBinary(data []byte) error { return errors.New("there is no way back") }

func TestRunRefuses(t *testing.T) {
	nothing := func(context.Context, *comm.Group) error { return nil }
	s, _ := newCounter(t)
	wantArgument(t, Run(t.Context(), nil, nothing), "comm: elastic.Run: the State is nil")
	wantArgument(t, Run(t.Context(), s, nil), "comm: elastic.Run: the function is nil")
	broken, err := NewState(Value("f", new(func())))
	if err != nil {
		t.Fatal(err)
	}
	if err := Run(t.Context(), broken, nothing); err == nil || !strings.HasPrefix(err.Error(), `comm: elastic.Commit: "f" (func) cannot be encoded: `) {
		t.Errorf("of a function: %v", err)
	}
	oneWay, err := NewState(Value("o", new(oneWay)))
	if err != nil {
		t.Fatal(err)
	}
	wantArgument(t, Run(t.Context(), oneWay, nothing), `comm: elastic.Restore: "o" (elastic.oneWay) cannot be decoded: there is no way back`)
	for r, err := range runJob(t, "shm", 1, func(run runFunc) error {
		s, _ := newCounter(t)
		return run(s, func(context.Context, *comm.Group) error { return run(s, nothing) })
	}) {
		if r == 0 {
			wantArgument(t, err, "comm: elastic.Run: another Run has this State")
		}
	}
}

// TestOwnErrorsEndRun: the function's own error ends Run on its rank. The others see that rank leave.
func TestOwnErrorsEndRun(t *testing.T) {
	for name, own := range map[string]func(ctx context.Context, world *comm.Group) error{
		"error":   func(context.Context, *comm.Group) error { return errOwn },
		"wrapped": func(context.Context, *comm.Group) error { return fmt.Errorf("step 3: %w", errOwn) },
		"argument": func(ctx context.Context, world *comm.Group) error {
			return errors.Join(errOwn, comm.Broadcast(ctx, world, []int{1}, 7))
		},
		"abort": func(ctx context.Context, world *comm.Group) error {
			world.Abort(errOwn)
			return comm.Barrier(ctx, world)
		},
		"cancelled": func(ctx context.Context, world *comm.Group) error {
			ctx, cancel := context.WithCancelCause(ctx)
			cancel(errOwn)
			return errors.Join(errOwn, comm.Barrier(ctx, world))
		},
	} {
		t.Run(name, func(t *testing.T) {
			calls := make([]atomic.Int64, 3)
			allCalled := waitForCalls(len(calls))
			errs := runJob(t, "shm", len(calls), func(run runFunc) error {
				s, n := newCounter(t)
				rank := -1
				err := run(s, func(ctx context.Context, world *comm.Group) error {
					rank = world.Rank()
					*n = rank + 10
					calls[rank].Add(1)
					allCalled()
					if rank == 1 {
						return own(ctx, world)
					}
					return comm.Barrier(ctx, world)
				})
				if *n != rank+10 {
					return fmt.Errorf("the variable of rank %d is %d; Run: %w", rank, *n, err)
				}
				return err
			})
			if !errors.Is(errs[1], errOwn) || calls[1].Load() != 1 {
				t.Errorf("rank 1 was called %d times: %v", calls[1].Load(), errs[1])
			}
			for _, r := range []int{0, 2} {
				if calls[r].Load() != 1 || !errors.Is(errs[r], errJobEnded) || !worldChanged(errs[r], nil) {
					t.Errorf("rank %d was called %d times: %v", r, calls[r].Load(), errs[r])
				}
			}
		})
	}
}

// TestNextWorldRefuses: if the ranks of the next world do not fit together, Run returns that error, and not only that of the world before.
func TestNextWorldRefuses(t *testing.T) {
	allCalled := waitForCalls(2)
	errs := inWorldAs(t, "tcp", 2, func(p *testRank) error {
		s, _ := newCounter(t)
		return runner{init: p.init, round: func() uint64 { return 0 }, run: 1, rejoin: func(context.Context) (*comm.Group, error) {
			return nil, fmt.Errorf("comm: Rejoin: %w", &comm.ArgumentError{Op: "Rejoin", Err: errors.New("TLS: true on rank 1")})
		}}.do(t.Context(), s, func(ctx context.Context, world *comm.Group) error {
			allCalled()
			if world.Rank() == 1 {
				return errOwn
			}
			return comm.Barrier(ctx, world)
		})
	})
	if err := errs[0]; comm.ExitCode(err) != 2 || !strings.HasPrefix(err.Error(), "comm: Rejoin: comm: Rejoin: TLS: true on rank 1\ncomm: Barrier") {
		t.Error(err)
	}
}

// TestRunOnceWithoutReplace: where ranks do not outlive a failure, Run calls the function once, and its error is the function's.
func TestRunOnceWithoutReplace(t *testing.T) {
	for name, change := range map[string]func(err error) bool{
		"own":  func(err error) bool { return errors.Is(err, errOwn) },
		"peer": func(err error) bool { _, is := errors.AsType[*comm.PeerError](err); return is },
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			allCalled := waitForCalls(2)
			errs := inWorldAs(t, "tcp", 2, func(p *testRank) error {
				s, n := newCounter(t)
				err := runner{init: p.init, round: func() uint64 { return 0 }, run: 1, rejoin: func(context.Context) (*comm.Group, error) {
					return nil, &comm.NoRejoinError{Why: errors.New("not here"), After: errOwn}
				}}.do(t.Context(), s, func(ctx context.Context, world *comm.Group) error {
					*n = 5
					allCalled()
					if world.Rank() == 1 {
						return errOwn
					}
					calls++
					return comm.Barrier(ctx, world)
				})
				if *n != 5 {
					return fmt.Errorf("the variable is %d", *n)
				}
				return err
			})
			r := map[string]int{"peer": 0, "own": 1}[name]
			if calls != 1 || !change(errs[r]) || strings.Contains(fmt.Sprint(errs[r]), "not here") {
				t.Errorf("called %d times: rank %d: %v", calls, r, errs[r])
			}
		})
	}
}

// TestCommitAfterAFailure: variables that a step has left half changed cannot be committed.
func TestCommitAfterAFailure(t *testing.T) {
	onTransports(t, func(t *testing.T, transport string) {
		var killed atomic.Bool
		wantNoErrors(t, runJob(t, transport, 3, func(run runFunc) error {
			s, n := newCounter(t)
			return run(s, func(ctx context.Context, world *comm.Group) error {
				if *n != 0 { // the second world
					if *n != 10 || s.Commits() != 2 {
						return fmt.Errorf("it goes on with %d, commit %d", *n, s.Commits())
					}
					return s.Commit()
				}
				*n = 10
				if err := errors.Join(s.Commit(), comm.Barrier(ctx, world)); err != nil {
					return err
				}
				*n = 11
				if world.Rank() == 2 && killed.CompareAndSwap(false, true) {
					return errKilled
				}
				err := comm.Barrier(ctx, world)
				if late := s.Commit(); late == nil || !worldChanged(late, world) {
					return errors.Join(errOwn, late)
				}
				return err
			})
		}))
	})
}

// TestCommitOutsideTheFunction: while Run brings the ranks together, nobody else uses the variables.
func TestCommitOutsideTheFunction(t *testing.T) {
	s, _ := newCounter(t)
	s.phase = syncing
	for _, f := range []func() error{s.Commit, s.Restore} {
		if err := f(); err == nil || !strings.HasSuffix(err.Error(), ": the function of Run has returned") {
			t.Error(err)
		}
	}
}

// TestTheFunctionThatHasReturnedIsCalledAgain: some ranks are done when another one dies.
func TestTheFunctionThatHasReturnedIsCalledAgain(t *testing.T) {
	onTransports(t, func(t *testing.T, transport string) {
		var killed atomic.Bool
		var calls atomic.Int64
		called := make(chan struct{}, 6)
		wantNoErrors(t, runJob(t, transport, 3, func(run runFunc) error {
			s, n := newCounter(t)
			return run(s, func(ctx context.Context, world *comm.Group) error {
				calls.Add(1)
				*n++
				called <- struct{}{}
				if world.Rank() == 0 && killed.CompareAndSwap(false, true) {
					for range 3 { // who learns of the death first is not called in this world
						<-called
					}
					return errKilled
				}
				if *n != 1 {
					return fmt.Errorf("it begins with %d", *n-1)
				}
				return nil
			})
		}))
		if calls.Load() != 6 {
			t.Errorf("%d calls", calls.Load())
		}
	})
}

// TestAPanicFailsTheWorld: the others do not wait for a rank whose function has panicked, or has ended its goroutine, if its process lives on.
func TestAPanicFailsTheWorld(t *testing.T) {
	for name, leave := range map[string]func(){"panic": func() { panic("a mistake") }, "exit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			var left atomic.Bool
			wantNoErrors(t, runJob(t, "shm", 3, func(run runFunc) error {
				s, n := newCounter(t)
				err := errKilled // unless run returns another
				var caught sync.WaitGroup
				caught.Go(func() {
					defer func() { _ = recover() }()
					err = run(s, func(ctx context.Context, world *comm.Group) error {
						if world.Rank() == 1 && left.CompareAndSwap(false, true) {
							*n = 7
							leave()
						}
						return comm.Barrier(ctx, world)
					})
				})
				caught.Wait()
				if err == nil && *n != 0 {
					return fmt.Errorf("it ends with %d", *n)
				}
				return err
			}))
			if !left.Load() {
				t.Error("no rank has left")
			}
		})
	}
}

// TestTheFunctionReturnsEarlierOnOneRank: a rank that is done does not take part in a call of one that is not.
func TestTheFunctionReturnsEarlierOnOneRank(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // for the flight recorder
	errs := runJob(t, "shm", 2, func(run runFunc) error {
		s, _ := newCounter(t)
		return run(s, func(ctx context.Context, world *comm.Group) error {
			for range 1 + world.Rank() {
				if err := comm.Barrier(ctx, world); err != nil {
					return err
				}
			}
			return nil
		})
	})
	for r, err := range errs {
		if _, is := errors.AsType[*comm.MismatchError](err); !is {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	if want := "elastic: Run: the function has returned nil on rank 0, and goes on on others: "; !strings.HasPrefix(fmt.Sprint(errs[0]), want) {
		t.Errorf("rank 0: %v", errs[0])
	}
}

// TestCommitsDuringRun: another goroutine may ask for the number of commits while Run brings all ranks to one. The race detector sees whether it may.
func TestCommitsDuringRun(t *testing.T) {
	wantNoErrors(t, runJob(t, "shm", 2, func(run runFunc) error {
		s, _ := newCounter(t)
		var stop atomic.Bool
		var work sync.WaitGroup
		work.Go(func() {
			for !stop.Load() {
				s.Commits()
				runtime.Gosched()
			}
		})
		defer work.Wait()
		defer stop.Store(true)
		return run(s, func(context.Context, *comm.Group) error {
			if n := s.Commits(); n != 1 {
				return fmt.Errorf("%w: %d commits at the beginning", errOwn, n)
			}
			if err := s.Commit(); err != nil || s.Commits() != 2 {
				return fmt.Errorf("%w: %d commits after one more: %w", errOwn, s.Commits(), err)
			}
			return nil
		})
	}))
}
