package elastic

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorun/gorun/comm"
	"github.com/gorun/gorun/comm/internal/checkpoint"
	"github.com/gorun/gorun/env/testing/testkit"
)

// A sharded is a training in which each rank has a shard of its own besides.
type sharded struct {
	training
	rank  int
	shard []int64
}

func newSharded(rank int) *sharded {
	p := &sharded{training: *newTraining(0), rank: rank, shard: make([]int64, 40_000)}
	p.shard[7] = int64(rank)
	return p
}

func (p *sharded) state() (*State, error) {
	return NewState(Value("step", &p.Step), Value("notes", &p.Notes), Slice("small", p.small), Slice("large", p.large),
		Part(fmt.Sprint("shard ", p.rank), p.shard))
}

// train is training.train, with the shard.
func (p *sharded) train(ctx context.Context, world *comm.Group, s *State, steps int) error {
	return p.training.train(ctx, world, s, steps, func() error {
		for i := range p.shard {
			p.shard[i] += int64(p.Step + p.rank)
		}
		return nil
	})
}

func (p *sharded) wantEqual(want *training) error {
	sum := int64(want.Step*(want.Step-1)/2 + want.Step*p.rank)
	if p.shard[0] != sum || p.shard[7] != sum+int64(p.rank) || p.shard[len(p.shard)-1] != sum {
		return fmt.Errorf("the shard of rank %d begins with %v, want %d", p.rank, p.shard[:8], sum)
	}
	return p.training.wantEqual(want)
}

// TestPartsOutliveRanks: ranks are killed one after the other, at any time after a world has begun: while they compute, commit, and send parts.
func TestPartsOutliveRanks(t *testing.T) {
	const size, steps, kills = 4, 150, 15
	onTransports(t, func(t *testing.T, transport string) {
		seed := testkit.Seed()
		t.Logf("seed %d", seed)
		random, want, begun := rand.New(rand.NewPCG(seed, 0)), reference(size, steps), make(chan uint64, 1000)
		j := newTestJob(t, transport, size)
		done := make(chan struct{})
		go func() {
			defer close(done)
			last, killed := uint64(0), 0
			for round := range begun {
				if round <= last || killed == kills { // one at a time: there are two copies of a part
					continue
				}
				last = round
				killed++
				time.Sleep(time.Duration(random.IntN(2000)) * time.Microsecond) // any time is good
				j.mu.Lock()
				p := j.alive[random.IntN(size)]
				j.mu.Unlock()
				p.kill()
			}
		}()
		errs := j.run(func(own *testRank, run runFunc) error {
			p := newSharded(own.rank)
			s, err := p.state()
			if err != nil {
				return err
			}
			err = run(s, func(ctx context.Context, world *comm.Group) error {
				begun <- own.round.number
				return p.train(ctx, world, s, steps)
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

// TestPartsAreLost: if a rank and the one with the copy of its part are gone at once, all that are left say so.
func TestPartsAreLost(t *testing.T) {
	var killed atomic.Int64
	for r, err := range newTestJob(t, "shm", 3).run(func(own *testRank, run runFunc) error {
		p := newSharded(own.rank)
		s, err := p.state()
		if err != nil {
			return err
		}
		return run(s, func(ctx context.Context, world *comm.Group) error {
			if err := p.train(ctx, world, s, 3); err != nil {
				return err
			}
			if own.rank > 0 && killed.Add(1) <= 2 {
				return errKilled
			}
			return comm.Barrier(ctx, world)
		})
	}) {
		want := `comm: elastic.Run: nobody has part "shard 1" of rank 1: the rank that had it and the one with its copy are gone, or there never was one`
		if comm.ExitCode(err) != 2 || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// TestPartOfAnotherType: a Part does not take over as many bytes of another type, whether Go or Python has committed them.
func TestPartOfAnotherType(t *testing.T) {
	e, err := Part("shard", []float32{1, 2, 3}).entry()
	if err != nil {
		t.Fatal(err)
	}
	python := e
	if python.Tree, err = codec.Marshal(map[string]any{"leaf": []any{"float32", []int{3, 1}, "numpy", 0}}); err != nil {
		t.Fatal(err)
	}
	for _, e := range []checkpoint.Entry{e, python} {
		if _, err := Part("shard", make([]float32, 3)).decode(e); err != nil {
			t.Error(err)
		}
		_, err := Part("shard", make([]int32, 3)).decode(e)
		wantArgument(t, err, `comm: elastic.Restore: "shard" (int32 × 3) cannot be decoded: it is of float32 in the commit`)
	}
}
