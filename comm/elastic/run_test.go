package elastic

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorun/gorun/comm"
	"github.com/gorun/gorun/env/testing/testkit"
)

// onTransports runs test as a subtest for each.
func onTransports(t *testing.T, test func(t *testing.T, transport string)) {
	for _, transport := range []string{"tcp", "shm"} {
		t.Run(transport, func(t *testing.T) { test(t, transport) })
	}
}

func wantNoErrors(t *testing.T, errs []error) {
	t.Helper()
	for r, err := range errs {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// longSlice is the bytes of a slice that takes several pages.
const longSlice = 64 << 10

// training is a program whose result every step depends on, on all ranks.
type training struct {
	Step  int
	Notes map[string]int
	small []float32
	large []int64
}

func newTraining(rank int) *training {
	p := &training{Notes: map[string]int{}, small: make([]float32, 10), large: make([]int64, 3*longSlice/8)}
	p.Notes["begun by"] = rank
	p.large[0] = int64(rank)
	return p
}

func (p *training) state() (*State, error) {
	return NewState(Value("step", &p.Step), Value("notes", &p.Notes), Slice("small", p.small), Slice("large", p.large))
}

// advance is a step: it leaves the variables half changed if a rank fails.
func (p *training) advance(ctx context.Context, world *comm.Group) error {
	p.compute()
	sum := []int64{int64(world.Rank() + p.Step)}
	if err := comm.AllReduce(ctx, world, sum, comm.Sum); err != nil {
		return err
	}
	p.large[p.Step%len(p.large)] += sum[0]
	return nil
}

// compute is what a step does without other ranks.
func (p *training) compute() {
	p.Step++
	p.Notes[fmt.Sprint("step ", p.Step%5)] = p.Step
	p.small[p.Step%10]++
	for i := range p.large {
		p.large[i] = 3*p.large[i] + int64(p.Step)
	}
}

// reference is what a training of so many ranks and steps comes to.
func reference(size, steps int) *training {
	p := newTraining(0)
	for p.Step < steps {
		p.compute()
		p.large[p.Step%len(p.large)] += int64(size*(size-1)/2 + size*p.Step)
	}
	return p
}

// train takes the steps that are left, and commits each. It calls before each of them beforeStep, which may end it.
func (p *training) train(ctx context.Context, world *comm.Group, s *State, steps int, beforeStep func() error) error {
	for p.Step < steps {
		if err := beforeStep(); err != nil {
			return err
		}
		if err := p.advance(ctx, world); err != nil {
			return err
		}
		if err := s.Commit(); err != nil {
			return err
		}
	}
	return nil
}

// wantEqual returns an error unless p is as want.
func (p *training) wantEqual(want *training) error {
	if p.Step == want.Step && fmt.Sprint(p.Notes) == fmt.Sprint(want.Notes) && slices.Equal(p.small, want.small) && slices.Equal(p.large, want.large) {
		return nil
	}
	return fmt.Errorf("the result is %v %v %v, want %v %v %v", p.Step, p.Notes, p.large[:6], want.Step, want.Notes, want.large[:6])
}

// TestRunGoesOnFromTheLastCommit: a rank is killed in the middle of every few steps, a different one each time, and the result is that of a run
// without failures.
func TestRunGoesOnFromTheLastCommit(t *testing.T) {
	const size, steps = 3, 30
	onTransports(t, func(t *testing.T, transport string) {
		var kills atomic.Int64
		want := reference(size, steps)
		errs := runJob(t, transport, size, func(run runFunc) error {
			p := newTraining(int(kills.Load())) // what a new process begins with is not what the job goes on with
			s, err := p.state()
			if err != nil {
				return err
			}
			begun := false
			err = run(s, func(ctx context.Context, world *comm.Group) error {
				if got := s.Commits(); got != uint64(p.Step+1) {
					return fmt.Errorf("commit %d has step %d", got, p.Step)
				}
				if begun && kills.Load() == 0 {
					return fmt.Errorf("called again without a kill")
				}
				begun = true
				return p.train(ctx, world, s, steps, func() error {
					if n := kills.Load(); int64(p.Step) == 4*n+4 && int64(world.Rank()) == n%size && kills.CompareAndSwap(n, n+1) {
						p.large[5] = -1
						return errKilled
					}
					return nil
				})
			})
			if err == nil {
				err = p.wantEqual(want)
			}
			return err
		})
		wantNoErrors(t, errs)
		if kills.Load() < 5 {
			t.Errorf("there were %d kills", kills.Load())
		}
	})
}

// TestCommitsOfOneRank: if only some ranks commit, Run goes on from what they have, as long as they live, and then from what is left.
func TestCommitsOfOneRank(t *testing.T) {
	var kills atomic.Int64
	var begins sync.Map
	wantNoErrors(t, runJob(t, "shm", 3, func(run runFunc) error {
		s, n := newCounter(t)
		return run(s, func(ctx context.Context, world *comm.Group) error {
			begins.Store([2]int{int(kills.Load()), world.Rank()}, *n)
			for *n < 12 {
				if k := kills.Load(); k == 0 && *n == 5 && world.Rank() == 2 || k == 1 && *n == 9 && world.Rank() == 0 {
					kills.Add(1)
					return errKilled
				}
				if err := comm.Barrier(ctx, world); err != nil {
					return err
				}
				*n++
				if world.Rank() == 0 {
					if err := s.Commit(); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}))
	for k, want := range []int{0, 5, 5} {
		for r := range 3 {
			if n, _ := begins.Load([2]int{k, r}); n != want {
				t.Errorf("after %d kills rank %d begins with %v, want %d", k, r, n, want)
			}
		}
	}
}

// TestKilledAtAnyTime: ranks are killed while they compute, commit, meet, and receive a commit, several at once, too.
func TestKilledAtAnyTime(t *testing.T) {
	const size, steps, kills = 4, 60, 25
	onTransports(t, func(t *testing.T, transport string) {
		seed := testkit.Seed()
		t.Logf("seed %d", seed)
		random, want, begun := rand.New(rand.NewPCG(seed, 0)), reference(size, steps), make(chan struct{}, 1000)
		j := newTestJob(t, transport, size)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range kills {
				if _, more := <-begun; !more { // a world has begun, or the job has ended
					return
				}
				time.Sleep(time.Duration(random.IntN(3000)) * time.Microsecond) // any time is good
				for range 1 + random.IntN(2) {
					j.mu.Lock()
					p := j.alive[random.IntN(size)]
					j.mu.Unlock()
					p.kill()
				}
			}
		}()
		errs := j.run(func(_ *testRank, run runFunc) error {
			p := newTraining(0)
			s, err := p.state()
			if err != nil {
				return err
			}
			err = run(s, func(ctx context.Context, world *comm.Group) error {
				select {
				case begun <- struct{}{}:
				default:
				}
				return p.train(ctx, world, s, steps, func() error { return nil })
			})
			if err == nil {
				err = p.wantEqual(want)
			}
			return err
		})
		close(begun)
		<-done
		wantNoErrors(t, errs)
		t.Logf("the last round was number %d", j.round.number)
	})
}
