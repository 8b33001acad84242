package python_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/comm"
	"github.com/gorun/gorun/comm/elastic"
	"github.com/gorun/gorun/env/testing/testkit"
)

func TestMain(m *testing.M) {
	if os.Getenv("ELASTIC_RANK") != "" {
		if err := elasticRank(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println("rank 1: all of it")
		return
	}
	os.Exit(m.Run())
}

// TestElasticWithGo: a rank in Go and two in Python share a State, and get it from the others when they have died. The others compare what they have.
func TestElasticWithGo(t *testing.T) {
	path, prefix := python(t, "numpy"), testkit.Library(t, "../..")
	gorun, err := testkit.Gorun(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	out, err := ofPackage(t, prefix, path, gorun, "--omp-num-threads=1", "--nproc-per-node=3", "--on-failure=replace", "--max-restarts=3",
		"--env=GO_RANK="+os.Args[0], "tests/elastic_go.py").CombinedOutput()
	if n := strings.Count(string(out), "all of it"); err != nil || n != 3 {
		t.Errorf("%v, %d of 3 ranks have done all of it:\n%s", err, n, out)
	}
}

// elasticRank is rank 1 of tests/elastic_go.py.
func elasticRank() error {
	var (
		step    int
		notes   []int
		weights = make([]float64, 1001)
		shard   = make([]int32, 10)
	)
	state, err := elastic.NewState(elastic.Value("step", &step), elastic.Value("notes", &notes), elastic.Slice("weights", weights), elastic.Part("shard 1", shard))
	if err != nil {
		return err
	}
	if err := elastic.Run(context.Background(), state, func(ctx context.Context, world *comm.Group) error {
		for step < 20 {
			if step == 9 && os.Getenv("GORUN_ROUND") == "2" {
				return unix.Kill(os.Getpid(), unix.SIGKILL)
			}
			grad := slices.Repeat([]float64{float64(1 + step)}, len(weights))
			if err := comm.AllReduce(ctx, world, grad, comm.Sum); err != nil {
				return err
			}
			for i := range weights {
				weights[i] += grad[i]
			}
			for i := range shard {
				shard[i]++
			}
			step++
			notes = append(notes, step)
			if err := state.Commit(); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	if step != 20 || len(notes) != 20 || notes[19] != 20 || weights[0] != 630 || weights[1000] != 630 || shard[0] != 20 {
		return errors.New(fmt.Sprint("it ends with ", step, notes, weights[0], shard))
	}
	return nil
}
