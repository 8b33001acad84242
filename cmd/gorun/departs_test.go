package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/comm"
	"github.com/gorun/gorun/env/testing/testkit"
)

var departSeed = flag.Uint64("depart-seed", 0, "seed of how ranks depart; 0: a new one")

func init() {
	// departs: in each attempt before the last one, ranks depart while the others need them, each in a way of its own.
	rankPrograms["departs"] = func(ctx context.Context, last int) error {
		attempt, _ := strconv.Atoi(os.Getenv("TORCHELASTIC_RESTART_COUNT"))
		seed, _ := strconv.ParseUint(os.Args[3], 10, 64)
		rank, _ := strconv.ParseUint(os.Getenv("RANK"), 10, 64)
		chance := rand.New(rand.NewPCG(seed, rank<<32|uint64(attempt)))
		return inWorlds(ctx, func(ctx context.Context, g *comm.Group) error {
			part, err := comm.NewGroup(ctx, g, g.Ranks())
			if err != nil {
				return err
			}
			for n := 0; ; n++ {
				sum := []int{g.Rank() + 1}
				if err := comm.AllReduce(ctx, part, sum, comm.Sum); err != nil {
					return err
				}
				if want := g.Size() * (g.Size() + 1) / 2; sum[0] != want {
					return fmt.Errorf("the sum is %d, want %d", sum[0], want)
				}
				attempt, _ := strconv.Atoi(os.Getenv("TORCHELASTIC_RESTART_COUNT"))
				switch {
				case attempt >= last && n == 10:
					return nil
				case attempt < last && chance.IntN(50*g.Size()) == 0:
					if err := depart(ctx, g, part, chance.IntN(7)); err != nil {
						return err
					}
				}
			}
		})
	}
}

// depart is what a rank does that leaves the others alone. If it returns nil, the rank does not know that.
func depart(ctx context.Context, g, part *comm.Group, way int) error {
	switch way {
	case 0:
		os.Exit(0)
	case 1:
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case 2:
		part.Abort(errors.New("it has had enough"))
	case 3:
		return errors.Join(part.Close(), comm.Barrier(ctx, g))
	case 4:
		return errors.Join(g.Close(), comm.ErrRoundOver)
	case 5: // it may be told of the next round before it ends
		err := g.Close()
		time.Sleep(2 * time.Second)
		fmt.Println("exits:", err)
		os.Exit(0)
	}
	return comm.ErrRoundOver
}

// TestRanksDepart: whichever way a rank leaves the others alone, they are together again in the next round, and at the end the job succeeds.
func TestRanksDepart(t *testing.T) {
	testkit.Nightly(t, "takes half a minute")
	t.Parallel()
	seed := *departSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	const attempts = 60
	t.Logf("-depart-seed=%d", seed)
	program := fmt.Sprintf("departs %d %d", attempts, seed)
	restarts := fmt.Sprintf("--max-restarts=%d", 2*attempts) // more than one rank may depart, one after the other
	j := newReplacingJobOf(t, program, "2", "ttl=20,join_timeout=60", restarts, "--max-restart-backoff=0", "--replace-timeout=10")
	a := startNodeFor(t, 10*patience, j.args...)
	a.expect("waiting: ")
	b := startNodeFor(t, 10*patience, j.args...)
	for _, n := range []*node{a, b} {
		for range 2 {
			n.expect(`\] done in round `)
		}
		n.end(0)
	}
}
