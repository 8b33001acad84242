package elastic

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorun/gorun/comm"
	"github.com/gorun/gorun/comm/internal/checkpoint"
)

const benchBytes = 1 << 30

// benchWorker is the variable that makes this test binary a rank of a benchmark: what to measure, the transport, and how often.
const benchWorker = "ELASTIC_BENCH"

// BenchmarkSync moves 1 GiB to a rank as a State, from one or three others, and the same bytes by Send and Recv, in turns. Ranks are processes.
// It prints medians, and judges nothing.
func BenchmarkSync(b *testing.B) {
	for _, transport := range []string{"shm", "tcp"} {
		for _, holders := range []int{1, 3} {
			b.Run(fmt.Sprintf("%s/from=%d", transport, holders), func(b *testing.B) { benchmark(b, "sync", transport, holders+1) })
		}
	}
}

// BenchmarkCommit commits 1 GiB of Parts on each of two ranks, until their copies are with the other one, and exchanges the same bytes by
// Send and Recv, in turns.
func BenchmarkCommit(b *testing.B) {
	for _, transport := range []string{"shm", "tcp"} {
		b.Run(transport, func(b *testing.B) { benchmark(b, "commit", transport, 2) })
	}
}

func benchmark(b *testing.B, what, transport string, size int) {
	var own, sendRecv, returned, ratio []float64
	for _, t := range inProcesses(b, what, transport, size) {
		own = append(own, benchBytes/t.Own.Seconds()/1e9)
		sendRecv = append(sendRecv, benchBytes/t.SendRecv.Seconds()/1e9)
		returned = append(returned, float64(t.Returned.Milliseconds()))
		ratio = append(ratio, 100*t.SendRecv.Seconds()/t.Own.Seconds())
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(own), "GB/s")
	b.ReportMetric(median(sendRecv), "sendrecv-GB/s")
	b.ReportMetric(median(ratio), "%-of-sendrecv")
	if what == "commit" {
		b.ReportMetric(median(returned), "ms-until-Commit-returns")
	}
}

func median(xs []float64) float64 {
	slices.Sort(xs)
	return xs[len(xs)/2]
}

// benchTimes are how long moving the bytes once took, and when Commit has returned.
type benchTimes struct{ Own, SendRecv, Returned time.Duration }

// inProcesses measures as often as b says, in a world of so many processes.
func inProcesses(b *testing.B, what, transport string, size int) (all []benchTimes) {
	meet := "file://" + filepath.Join(b.TempDir(), "meet")
	var ranks []*exec.Cmd
	var out bytes.Buffer
	for r := range size {
		cmd := exec.CommandContext(b.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %d %s", benchWorker, what, transport, b.N, meet),
			"RANK="+strconv.Itoa(r), "WORLD_SIZE="+strconv.Itoa(size))
		cmd.Stderr = os.Stderr
		if r == 0 {
			cmd.Stdout = &out
		}
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		ranks = append(ranks, cmd)
	}
	for r, cmd := range ranks {
		if err := cmd.Wait(); err != nil {
			b.Errorf("rank %d: %v", r, err)
		}
	}
	if b.Failed() {
		b.FailNow()
	}
	for decoder := json.NewDecoder(&out); ; {
		var t benchTimes
		if err := decoder.Decode(&t); err == io.EOF {
			return all
		} else if err != nil {
			b.Fatal(err)
		}
		all = append(all, t)
	}
}

// runBenchWorker is main of a rank of a benchmark.
func runBenchWorker(ctx context.Context, args []string) error {
	calls, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	world, err := comm.Init(ctx, comm.WithInitMethod(args[3]), comm.WithTransport(comm.Transport(args[1])))
	if err != nil {
		return err
	}
	r := benchRank{world: world, buf: make([]float32, benchBytes/4), other: make([]float32, benchBytes/4)}
	item, measure := Slice("large", r.buf), r.sync
	if args[0] == "commit" {
		item, measure = Part(fmt.Sprint("rank ", world.Rank()), r.buf), r.commit
	}
	if r.state, err = NewState(item); err == nil {
		err = r.state.sync(ctx, world, 0, 1)
	}
	for i := range calls + 1 { // the first is for the memory
		if err != nil {
			return err
		}
		var t benchTimes
		if t, err = measure(ctx, uint64(i+1)); err == nil && i > 0 && world.Rank() == 0 {
			err = json.NewEncoder(os.Stdout).Encode(t)
		}
	}
	return errors.Join(err, world.Close())
}

type benchRank struct {
	world      *comm.Group
	state      *State
	buf, other []float32
}

func (r *benchRank) timed(ctx context.Context, call func() error) (time.Duration, error) {
	if err := comm.Barrier(ctx, r.world); err != nil {
		return 0, err
	}
	begun := time.Now()
	err := errors.Join(call(), comm.Barrier(ctx, r.world))
	return time.Since(begun), err
}

// sync makes the last rank a newcomer.
func (r *benchRank) sync(ctx context.Context, round uint64) (t benchTimes, err error) {
	receiver := r.world.Size() - 1
	if t.SendRecv, err = r.timed(ctx, func() error {
		switch r.world.Rank() {
		case 0:
			return comm.Send(ctx, r.world, r.buf, receiver)
		case receiver:
			_, err := comm.Recv(ctx, r.world, r.buf, 0)
			return err
		}
		return nil
	}); err != nil {
		return t, err
	}
	if r.world.Rank() == receiver {
		err := r.state.forget()
		if err != nil {
			return t, err
		}
		memory, err := r.state.checkpoints.Reserve(checkpoint.Shared, benchBytes)
		if err != nil {
			return t, err
		}
		populateUntil(new(atomic.Bool), [][]byte{memory})
	}
	t.Own, err = r.timed(ctx, func() error { return r.state.sync(ctx, r.world, round, 1) })
	return t, err
}

func (r *benchRank) commit(ctx context.Context, _ uint64) (t benchTimes, err error) {
	other := 1 - r.world.Rank()
	if t.SendRecv, err = r.timed(ctx, func() error {
		sent := comm.ISend(r.world, r.buf, other)
		_, err := comm.Recv(ctx, r.world, r.other, other)
		return errors.Join(err, sent.Wait(ctx))
	}); err != nil {
		return t, err
	}
	t.Own, err = r.timed(ctx, func() error {
		begun := time.Now()
		err := r.state.Commit()
		t.Returned = time.Since(begun)
		return errors.Join(err, r.state.await())
	})
	return t, err
}
