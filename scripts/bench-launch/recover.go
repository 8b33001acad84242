package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/gorun/gorun/comm"
	"github.com/gorun/gorun/scripts/internal/peers"
)

// Workers that compute together: in Go with package comm, and in Python with torch.distributed over gloo.
const (
	inGo     = "all-reduce"
	inPython = "python"
)

// recoverPy does what computeTogether does.
//
//go:embed recover.py
var recoverPy []byte

// recoverTogether measures the time from the death of one of the workers, 4 of one node or 2 of each of two, to the first right all-reduce of
// the last rank in the world after it.
func recoverTogether(nodes int, language string) measure {
	return func(ctx context.Context, b *bench, l launcher, dir string) (float64, int, error) {
		if err := b.runTogether(ctx, l, nodes, dir, language); err != nil {
			return 0, 0, err
		}
		died, err := newest(dir, "died", 1)
		last, lastErr := newest(dir, "right-1-*", 4)
		return milliseconds(last - died), 0, errors.Join(err, lastErr)
	}
}

// startTogether measures the time from the command to the first all-reduce of the last of 4 workers.
func startTogether(ctx context.Context, b *bench, l launcher, dir string) (float64, int, error) {
	began := time.Now()
	if err := b.runTogether(ctx, l, 1, dir, inPython); err != nil {
		return 0, 0, err
	}
	last, err := newest(dir, "right-0-*", 4)
	return milliseconds(last - began.UnixNano()), 0, err
}

// runTogether runs workers that compute together.
func (b *bench) runTogether(ctx context.Context, l launcher, nodes int, dir, language string) error {
	worker := b.workerCommand(dir, inGo)
	if language == inPython {
		script := filepath.Join(dir, "recover.py")
		if err := os.WriteFile(script, recoverPy, 0o600); err != nil {
			return err
		}
		worker = []string{peers.Python(), script, dir}
	}
	return l.run(ctx, nodes, 4, dir, worker)
}

// computeTogether is a worker that computes with the others. Rank 1 dies after a while, once.
func computeTogether(dir string) error {
	ctx := context.Background()
	world, err := comm.Init(ctx)
	for {
		if err == nil {
			err = allReduces(ctx, world, dir)
		}
		_, lost := errors.AsType[*comm.PeerError](err)
		if !lost && !errors.Is(err, comm.ErrRoundOver) {
			return err
		}
		next, impossible := comm.Rejoin(ctx)
		if _, ok := errors.AsType[*comm.ArgumentError](impossible); ok {
			return err // the launcher starts all of them again
		}
		world, err = next, impossible
	}
}

// allReduces checks 200 sums, and notes when the first was there.
func allReduces(ctx context.Context, world *comm.Group, dir string) error {
	attempt := attemptIn(dir)
	for i := range 200 {
		sum := []int64{1}
		if err := comm.AllReduce(ctx, world, sum, comm.Sum); err != nil {
			return err
		}
		if sum[0] != int64(world.Size()) {
			return fmt.Errorf("the sum is %d, want %d", sum[0], world.Size())
		}
		if i == 0 {
			if err := stamp(dir, "right-"+attempt+"-"+strconv.Itoa(world.Rank()), time.Now()); err != nil {
				return err
			}
		}
		if attempt == "0" && i == 100 && world.Rank() == 1 {
			_ = stamp(dir, "died", time.Now())
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
	}
	return nil
}

// attemptIn is 0 until a worker has died.
func attemptIn(dir string) string {
	if _, err := os.Stat(filepath.Join(dir, "died")); err == nil {
		return "1" // whatever an agent counts: torchrun's do not agree
	}
	return "0"
}

// stamp writes a time to a file that is there only when it is whole.
func stamp(dir, name string, at time.Time) error {
	unseen := filepath.Join(dir, "writing-"+name)
	text := []byte(strconv.FormatInt(at.UnixNano(), 10))
	return errors.Join(os.WriteFile(unseen, text, 0o600), os.Rename(unseen, filepath.Join(dir, name)))
}
