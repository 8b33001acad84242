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
	"testing"
	"time"

	"github.com/gorun/gorun/comm"
)

const benchBytes = 1 << 30

// benchWorker is the variable that makes this test binary a rank of a benchmark: the transport, and how often to measure.
const benchWorker = "ELASTIC_BENCH"

// BenchmarkSync moves 1 GiB to a rank as a State, from one or three others, and the same bytes by Send and Recv, in turns. Ranks are processes.
// It prints medians, and judges nothing.
func BenchmarkSync(b *testing.B) {
	for _, transport := range []string{"shm", "tcp"} {
		for _, holders := range []int{1, 3} {
			b.Run(fmt.Sprintf("%s/from=%d", transport, holders), func(b *testing.B) {
				var sync, sendRecv, ratio []float64
				for _, t := range inProcesses(b, transport, holders+1) {
					sync = append(sync, benchBytes/t.Sync.Seconds()/1e9)
					sendRecv = append(sendRecv, benchBytes/t.SendRecv.Seconds()/1e9)
					ratio = append(ratio, 100*t.SendRecv.Seconds()/t.Sync.Seconds())
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(median(sync), "GB/s")
				b.ReportMetric(median(sendRecv), "sendrecv-GB/s")
				b.ReportMetric(median(ratio), "%-of-sendrecv")
			})
		}
	}
}

func median(xs []float64) float64 {
	slices.Sort(xs)
	return xs[len(xs)/2]
}

// benchTimes are how long moving the bytes once took.
type benchTimes struct{ Sync, SendRecv time.Duration }

// inProcesses measures as often as b says, in a world of so many processes.
func inProcesses(b *testing.B, transport string, size int) (all []benchTimes) {
	meet := "file://" + filepath.Join(b.TempDir(), "meet")
	var ranks []*exec.Cmd
	var out bytes.Buffer
	for r := range size {
		cmd := exec.CommandContext(b.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %s", benchWorker, transport, b.N, meet),
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
	calls, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	world, err := comm.Init(ctx, comm.WithInitMethod(args[2]), comm.WithTransport(comm.Transport(args[0])))
	if err != nil {
		return err
	}
	buf := make([]float32, benchBytes/4)
	s, err := NewState(Slice("large", buf))
	if err == nil {
		err = errors.Join(s.begin(), s.take())
	}
	if err != nil {
		return err
	}
	receiver := world.Size() - 1
	timed := func(call func() error) (time.Duration, error) {
		if err := comm.Barrier(ctx, world); err != nil {
			return 0, err
		}
		begun := time.Now()
		err := errors.Join(call(), comm.Barrier(ctx, world))
		return time.Since(begun), err
	}
	for i := range calls + 1 { // the first is for the memory
		if s.last = (commitID{}); world.Rank() < receiver {
			s.last = commitID{1, 1}
		}
		var t benchTimes
		if t.SendRecv, err = timed(func() error {
			switch world.Rank() {
			case 0:
				return comm.Send(ctx, world, buf, receiver)
			case receiver:
				_, err := comm.Recv(ctx, world, buf, 0)
				return err
			}
			return nil
		}); err != nil {
			return err
		}
		if t.Sync, err = timed(func() error { return s.sync(ctx, world, 1, layoutOf(1, s.items)) }); err != nil {
			return err
		}
		if i > 0 && world.Rank() == 0 {
			if err := json.NewEncoder(os.Stdout).Encode(t); err != nil {
				return err
			}
		}
	}
	return world.Close()
}
