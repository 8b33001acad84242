// Command bench-comm measures package comm, Open MPI, MPICH and gloo, in turn and with the same sizes, and prints how
// many times longer than comm the best of the others takes, in Markdown. Its exit code does not judge the results. A
// full run takes half an hour on a machine that should do nothing else. A run with -quick, which only checks that
// everything works, takes half a minute.
//
//	go run ./scripts/bench-comm [-quick] [-json FILE] [-svg FILE] [flags]
//
// If it may, it installs the missing packages among Debian's openmpi-bin, libopenmpi-dev, mpich, libmpich-dev, gcc and
// python3-torch, and says what it has to do without. All sides run the same loop: worker.go for comm, peers/mpi.c and
// peers/gloo.py for the others. The contender "comm alloc" gets its buffers from comm.Alloc.
//
// Elements are float32, and the operation is the sum. Sizes are in bytes of the whole buffer: the buffer of all_reduce,
// reduce and broadcast, the output of all_gather, the input of reduce_scatter and all_to_all, or one message of sendrecv,
// whose time is half the round trip between two ranks. The operation buckets makes eight all-reduces at once, of an
// eighth of the buffer each, as DDP does; it is measured only if you name it. The time of a cell is the slowest rank's mean in a batch of calls,
// the median of that over batches, and the median over rounds; each round starts every contender again for each operation.
// Between two calls, memory is hot, that is, still in the caches of the rank that uses it; or dirty: every rank has just
// written what it is about to send, as programs do. The time for writing is measured separately and subtracted.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
)

func main() {
	if isRank, err := rank(os.Args[1:]); isRank {
		if err != nil {
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

// rank runs this process as a rank, if its arguments say so.
func rank(args []string) (isRank bool, err error) {
	if len(args) > 0 && args[0] == workerArg {
		return true, work(args[1:])
	}
	return false, nil
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
	b := bench{options: o, contenders: list, execute: (*exec.Cmd).Run, samples: make(samples)}
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

// write writes the files that the options ask for.
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

// busy warns if other processes use the processors, according to the text of /proc/loadavg: ranks that spin suffer most from them.
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
