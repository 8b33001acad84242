// Command bench-comm measures package comm beside Open MPI, MPICH and gloo, in turn and on the same sizes, and prints
// how many times longer the best of them takes, in Markdown. It judges nothing by its exit code. All of it takes half an
// hour on a machine that does nothing else, as it should; -quick, which is for seeing that all works, half a minute.
//
//	go run ./scripts/bench-comm [-quick] [-json FILE] [-svg FILE] [flags]
//
// It installs what is missing of Debian's openmpi-bin, libopenmpi-dev, mpich, libmpich-dev, gcc and python3-torch if it may,
// and says what it does without. All sides run the same loop: worker.go for comm, peers/mpi.c, peers/gloo.py. The contender
// "comm alloc" has its buffers from comm.Alloc.
//
// Elements are float32, the operation is the sum. Bytes are those of the whole buffer: what all_reduce, reduce and
// broadcast have in place, what all_gather gathers, what reduce_scatter and all_to_all take, one message of sendrecv, whose
// time is half of there and back between two ranks. The time of a cell is the median over batches of calls of the slowest
// rank's mean, and then the median over rounds; each round starts every contender anew for each operation. Between two calls
// memory is hot, still in the caches of the rank that uses it, or dirty: every rank has written what it is about to send, as
// a program does, and the time of writing alone is taken off.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == workerArg {
		if err := work(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "bench-comm:", err)
			os.Exit(1)
		}
		return
	}
	o, err := parseFlags(os.Args[1:], os.Stdout)
	if errors.Is(err, errHelp) {
		return
	}
	code := 2
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		code, err = 1, run(ctx, o, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-comm:", err)
		os.Exit(code)
	}
}

// run measures, until ctx ends, prints to out and writes what o asks for.
func run(ctx context.Context, o options, out io.Writer) error {
	dir, err := os.MkdirTemp("", "bench-comm-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if o.install {
		install()
	}
	list, missing, err := contenders(dir, o.transports)
	if err != nil {
		return err
	}
	notes := missing
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		notes = append(notes, busy(string(text))...)
	}
	for _, text := range notes {
		fmt.Fprintln(os.Stderr, text)
	}
	b := bench{options: o, contenders: list, samples: make(samples)}
	b.run(ctx)
	r := b.report(machine(), notes)
	r.print(out)
	if err := r.write(); err != nil {
		return err
	}
	if b.failed > 0 {
		return fmt.Errorf("comm failed in %d launches", b.failed)
	}
	return nil
}

// write makes the files that were asked for.
func (r report) write() error {
	var err error
	if r.json != "" {
		text, failed := json.MarshalIndent(r, "", " ")
		err = errors.Join(failed, os.WriteFile(r.json, append(text, '\n'), 0o644))
	}
	if r.svg != "" {
		err = errors.Join(err, os.WriteFile(r.svg, []byte(r.chart()), 0o644))
	}
	return err
}

// busy warns of others who use the processors, by the text of /proc/loadavg: who spins suffers most from them.
func busy(loadavg string) (notes []string) {
	var load float64
	if _, err := fmt.Sscan(loadavg, &load); err == nil && load > 1 {
		notes = append(notes, fmt.Sprintf("the machine was busy with other work (a load of %g at the start), so these figures are not reliable", load))
	}
	return notes
}

// machine names the processors, their number and the system.
func machine() string {
	model := "processor"
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		model = cmp.Or(field(string(text), "model name"), model)
	}
	return fmt.Sprintf("%d × %s, %s/%s", runtime.NumCPU(), model, runtime.GOOS, runtime.GOARCH)
}
