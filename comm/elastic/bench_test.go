package elastic

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gorun/gorun/comm"
)

const benchBytes = 1 << 30

// benchWorker is the variable that makes this test binary a rank of a benchmark: what to measure, the transport, and how often.
const benchWorker = "ELASTIC_BENCH"

// Benchmark moves 1 GiB to a rank, from one or three others: as a State, by Send and Recv, and by Broadcast. Ranks are processes. It prints the
// median, and judges nothing.
func Benchmark(b *testing.B) {
	for _, transport := range []string{"shm", "tcp"} {
		for _, c := range []struct {
			what string
			size int
		}{{"SendRecv", 2}, {"Broadcast", 2}, {"Sync", 2}, {"Sync", 4}} {
			b.Run(fmt.Sprintf("%s/%s/from=%d", transport, c.what, c.size-1), func(b *testing.B) {
				median := inProcesses(b, c.what, transport, c.size)
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(median.Seconds()*1000, "ms")
				b.ReportMetric(benchBytes/median.Seconds()/1e9, "GB/s")
			})
		}
	}
}

// inProcesses returns how long one call takes.
func inProcesses(b *testing.B, what, transport string, size int) time.Duration {
	meet := "file://" + filepath.Join(b.TempDir(), "meet")
	var ranks []*exec.Cmd
	var out strings.Builder
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
	var times []time.Duration
	for field := range strings.FieldsSeq(out.String()) {
		d, err := time.ParseDuration(field)
		if err != nil {
			b.Fatal(err)
		}
		times = append(times, d)
	}
	slices.Sort(times)
	return times[len(times)/2]
}

// runBenchWorker is main of a rank of a benchmark.
func runBenchWorker(ctx context.Context, args []string) error {
	what, transport := args[0], args[1]
	calls, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	world, err := comm.Init(ctx, comm.WithInitMethod(args[3]), comm.WithTransport(transport))
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
	defer s.endRollback()
	receiver := world.Size() - 1
	call := map[string]func() error{
		"SendRecv": func() error {
			if world.Rank() == 0 {
				return comm.Send(ctx, world, buf, 1)
			}
			_, err := comm.Recv(ctx, world, buf, 0)
			return err
		},
		"Broadcast": func() error { return comm.Broadcast(ctx, world, buf, 0) },
		"Sync":      func() error { return s.sync(ctx, world, 1, layoutOf(1, s.items)) },
	}[what]
	for i := range calls + 1 { // the first is for the memory
		if s.last = (commitID{}); world.Rank() < receiver { // it has gone back to its commit, as in Run, while the others came
			s.last = commitID{1, 1}
			s.beginRollback()
			s.rollback.mayProceed(true)
			<-s.rollback.done
		}
		if err := comm.Barrier(ctx, world); err != nil {
			return err
		}
		begun := time.Now()
		if err := errors.Join(call(), comm.Barrier(ctx, world)); err != nil {
			return err
		}
		if i > 0 && world.Rank() == 0 {
			fmt.Println(time.Since(begun))
		}
	}
	return world.Close()
}
