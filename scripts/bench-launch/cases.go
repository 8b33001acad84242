package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gorun/gorun/scripts/internal/peers"
)

// A benchCase is one thing to measure.
type benchCase struct {
	name, unit string
	restarts   bool // only launchers that can restart
	nodes      bool // only launchers whose nodes meet
	together   bool // also launchers that replace a worker; its workers compute together
	python     bool // its workers are in Python, with torch
	measure    measure
}

// A measure makes a launcher do something once, in a directory of its own. Lost are lines of output.
type measure func(ctx context.Context, b *bench, l launcher, dir string) (value float64, lost int, err error)

var cases = []benchCase{
	{name: "start to the last worker's main, 1 worker", unit: "ms", measure: start(1, 1)},
	{name: "start to the last worker's main, 8 workers", unit: "ms", measure: start(1, 8)},
	{name: "start to the last worker's main, 64 workers", unit: "ms", measure: start(1, 64)},
	{name: "SIGKILL of one of 4 workers to the last successor's main", unit: "ms", restarts: true, measure: recovery(1)},
	{name: "SIGKILL of one of 4 workers to the next all-reduce, in Go with comm", unit: "ms", restarts: true, together: true, measure: recoverTogether(1, inGo)},
	{name: "SIGKILL of one of 4 workers to the next all-reduce, in Python with torch", unit: "ms", restarts: true, together: true, python: true, measure: recoverTogether(1, inPython)},
	{name: "start to the first all-reduce of 4 workers, in Python with torch", unit: "ms", restarts: true, together: true, python: true, measure: startTogether},
	{name: "output of 8 workers, each line marked with its rank", unit: "MB/s", measure: output},
	{name: "memory of the launcher and its helpers with 8 workers", unit: "MiB", measure: memory},
	{name: "two nodes: start to the last worker's main", unit: "ms", nodes: true, measure: start(2, 2*perNode)},
	{name: "two nodes: SIGKILL of a worker to the last successor's main", unit: "ms", nodes: true, measure: recovery(2)},
	{name: "two nodes: SIGKILL of a worker to the next all-reduce, in Go with comm", unit: "ms", nodes: true, together: true, measure: recoverTogether(2, inGo)},
	{name: "two nodes: SIGKILL of a worker to the next all-reduce, in Python with torch", unit: "ms", nodes: true, together: true, python: true, measure: recoverTogether(2, inPython)},
	{name: "three nodes: SIGKILL of an agent to the last main of the next round", unit: "ms", nodes: true, measure: loseNode},
	{name: "two nodes: idle processor time of the agent that hosts", unit: "ms/s", nodes: true, measure: idleNode(0, cpu)},
	{name: "two nodes: idle processor time of the other agent", unit: "ms/s", nodes: true, measure: idleNode(1, cpu)},
	{name: "two nodes: memory of the agent that hosts", unit: "MiB", nodes: true, measure: idleNode(0, resident)},
	{name: "two nodes: memory of the other agent", unit: "MiB", nodes: true, measure: idleNode(1, resident)},
}

// suits reports whether a launcher can do what the case measures.
func (c benchCase) suits(l launcher) bool {
	switch {
	case c.restarts && !l.restarts, c.nodes && l.node == nil, l.replaces && !c.together, l.preloads && !c.python, c.python && peers.Python() == "":
		return false
	}
	return true
}

// A figure is what one launcher did in one case.
type figure struct {
	Case     string
	Unit     string
	Launcher string
	Median   float64
	Min, Max float64
	Runs     int
	Lost     int // lines of output, or torn
	Hung     int // runs that were not over in time
}

type bench struct {
	dir, worker   string
	rounds, lines int
	launchers     []launcher
	runs          int
}

// run measures every launcher in turn, round by round.
func (b *bench) run(c benchCase) ([]figure, error) {
	values := make(map[string][]float64)
	lost, hung := make(map[string]int), make(map[string]int)
	for range b.rounds {
		for _, l := range b.launchers {
			if !c.suits(l) {
				continue
			}
			b.runs++
			dir := filepath.Join(b.dir, strconv.Itoa(b.runs))
			if err := os.Mkdir(dir, 0o700); err != nil {
				return nil, err
			}
			ctx, cancel := context.WithTimeout(context.Background(), runTimeout)
			value, n, err := c.measure(ctx, b, l, dir)
			late := ctx.Err() != nil
			cancel()
			switch {
			case late:
				hung[l.name]++
			case err != nil:
				return nil, fmt.Errorf("%s, %s: %w", l.name, c.name, err)
			default:
				values[l.name] = append(values[l.name], value)
				lost[l.name] += n
			}
		}
	}
	var figures []figure
	for _, l := range b.launchers {
		v := values[l.name]
		if len(v) == 0 {
			continue
		}
		slices.Sort(v)
		figures = append(figures, figure{Case: c.name, Unit: c.unit, Launcher: l.name, Runs: len(v),
			Median: v[len(v)/2], Min: v[0], Max: v[len(v)-1], Lost: lost[l.name], Hung: hung[l.name]})
	}
	return figures, nil
}

func (b *bench) workerCommand(dir string, todo ...string) []string {
	return append([]string{b.worker, workerArg, dir}, todo...)
}

// runTimeout is how long a run may take: a launcher that hangs is a result, too.
const runTimeout = time.Minute

// start measures the time from the start of the launchers to the main of the last worker.
func start(nodes, workers int) measure {
	return func(ctx context.Context, b *bench, l launcher, dir string) (float64, int, error) {
		began := time.Now()
		if err := l.run(ctx, nodes, workers, dir, b.workerCommand(dir, "end")); err != nil {
			return 0, 0, err
		}
		last, err := newest(dir, "began-*", workers)
		return milliseconds(last - began.UnixNano()), 0, err
	}
}

// recovery measures the time from the death of one of 4 workers to the main of the last of their successors.
func recovery(nodes int) measure {
	return func(ctx context.Context, b *bench, l launcher, dir string) (float64, int, error) {
		if err := l.run(ctx, nodes, 4, dir, b.workerCommand(dir, "die")); err != nil {
			return 0, 0, err
		}
		died, err := newest(dir, "died", 1)
		last, lastErr := newest(dir, "began-1-*", 4)
		return milliseconds(last - died), 0, errors.Join(err, lastErr)
	}
}

func output(ctx context.Context, b *bench, l launcher, dir string) (float64, int, error) {
	const workers = 8
	cmd := peers.Command(ctx, l.tagged(workers, b.workerCommand(dir, "write", strconv.Itoa(b.lines))))
	file, err := os.Create(filepath.Join(dir, "output"))
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = file.Close() }()
	var complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = file, &complaints
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return 0, 0, fmt.Errorf("%w: %s", err, complaints.Bytes())
	}
	took := time.Since(began)
	written, err := os.ReadFile(file.Name())
	if err != nil {
		return 0, 0, err
	}
	whole := 0
	for line := range bytes.Lines(written) {
		if bytes.Contains(line, []byte("step ")) && bytes.HasSuffix(line, []byte("as training programs do\n")) {
			whole++
		}
	}
	return float64(len(written)) / 1e6 / took.Seconds(), workers*b.lines - whole, nil
}

// memory measures the proportional set size of the launcher's processes: their own memory, and their part of what they share.
func memory(ctx context.Context, b *bench, l launcher, dir string) (float64, int, error) {
	cmd := peers.Command(ctx, l.command(8, b.workerCommand(dir, "wait")))
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	await(dir, "began-*", 8)
	value := resident(cmd, dir)
	return value, 0, errors.Join(release(dir), cmd.Wait())
}

// helpers returns a launcher's process and those of its descendants that are not workers.
func helpers(launcher int, dir string) (pids []int) {
	for _, pid := range family(launcher) {
		args, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		if pid == launcher || err == nil && !bytes.Contains(args, []byte(workerArg+"\x00"+dir)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// family returns a process and its descendants.
func family(pid int) []int {
	pids := []int{pid}
	for i := 0; i < len(pids); i++ {
		lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pids[i]))
		for _, name := range lists {
			text, _ := os.ReadFile(name)
			for field := range strings.FieldsSeq(string(text)) {
				if child, err := strconv.Atoi(field); err == nil {
					pids = append(pids, child)
				}
			}
		}
	}
	return pids
}

// pss returns a process's proportional set size in KiB.
func pss(pid int) float64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "Pss:"); ok {
			kib, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kib
		}
	}
	return 0
}

// newest returns the latest of the times in the files that match. There must be n of them.
func newest(dir, pattern string, n int) (last int64, err error) {
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(names) != n {
		return 0, fmt.Errorf("%d files %s, want %d", len(names), pattern, n)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return 0, err
		}
		at, err := strconv.ParseInt(string(text), 10, 64)
		if err != nil {
			return 0, err
		}
		last = max(last, at)
	}
	return last, nil
}

func milliseconds(ns int64) float64 { return float64(ns) / 1e6 }
