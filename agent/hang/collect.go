package hang

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gorun/gorun/env/proc"
	"github.com/gorun/gorun/env/progress"
)

// A Report is what workers were doing.
type Report struct {
	Doing []string // by worker, as the end of a sentence about it: "it was in main.step (train.go:42)"
	Stack []string // by worker, if it is known: the program's functions, "step (train.py:42) < main (train.py:50)"
	Hint  []string // by worker: how to see its stacks; empty: they are there, or there is no way
	// Dumps says, by worker, whether the program prints its stacks on SIGABRT, and ends.
	Dumps []bool
}

// FirstHint says how to see stacks that are missing; empty: none is, or there is no way.
func (r *Report) FirstHint() string {
	return cmp.Or(r.Hint...)
}

const (
	collectTimeout = 10 * time.Second
	stacksTimeout  = 4 * time.Second // in which a worker has to tell its stacks
	maxFile        = 4 << 20         // bytes of stacks of a worker
	cutNote        = "\n(the rest is cut)\n"
)

// StacksFile is where Collect writes the stacks of a worker, in the directory of its error file.
const StacksFile = "stacks.txt"

// FlightsFile is where Collect writes the flight recorders of the workers of a node, in the directory of the attempt.
const FlightsFile = "flights.txt"

// Collect writes what workers are doing to files: the stacks of the worker with local rank R to <dir>/R/stacks.txt, and the flight
// recorders of those that use package comm to <dir>/flights.txt. The workers go on undisturbed. Collect takes a few seconds at most. If it
// cannot write something in that time, the error says what. If dir is empty, it writes nothing. It always returns what it knows of the workers.
func Collect(ctx context.Context, workers []Worker, dir string) (Report, error) {
	ctx, cancel := context.WithTimeout(ctx, collectTimeout)
	defer cancel()
	found := make([]finding, len(workers))
	var looking sync.WaitGroup
	for i, w := range workers {
		looking.Go(func() { found[i] = look(ctx, w) })
	}
	looking.Wait()
	var report Report
	for _, f := range found {
		report.Doing, report.Stack = append(report.Doing, f.doing), append(report.Stack, f.stack)
		report.Hint, report.Dumps = append(report.Hint, f.hint), append(report.Dumps, f.dumps)
	}
	if dir == "" {
		return report, nil
	}
	written := make(chan error, 1)
	go func() { written <- write(workers, found, dir) }()
	select {
	case err := <-written:
		return report, err
	case <-time.After(collectTimeout):
		return report, fmt.Errorf("%s: no answer within %v", dir, collectTimeout)
	}
}

// A finding is what look has found out about one worker.
type finding struct {
	text    string // for its file
	doing   string
	stack   string
	waiting bool // its stack is in a call that waits for other ranks
	hint    string
	dumps   bool
	flights []json.RawMessage
}

// look finds out what a worker is doing. It uses only means that do not disturb the worker.
func look(ctx context.Context, w Worker) finding {
	if w.Pid == 0 {
		return finding{}
	}
	threads, doing := threadsOf(w)
	f := finding{doing: doing}
	section := func(title, text string) { f.text += "==== " + title + "\n" + strings.TrimRight(text, "\n") + "\n\n" }
	section(fmt.Sprintf("rank %d (local rank %d), process %d, at %s", w.Rank, w.LocalRank, w.Pid, time.Now().Format("2006-01-02 15:04:05.000")), "")
	asking, cancel := context.WithTimeout(ctx, stacksTimeout)
	defer cancel()
	program := programOf(programPid(w))
	status, isSilent := ask(asking, w, true)
	switch {
	case status != nil:
		f.flights = status.Flights
		section("What it waits for (package comm)", describe(status))
		section("Stacks of goroutines", status.Stacks)
		if program != programPython { // there, comm knows the stacks of its own goroutines only
			f.set(goFrame(status.Stacks))
		}
	case isSilent:
		section("It does not answer", "")
	}
	if status == nil || program == programPython {
		f.lookInside(ctx, w, section)
	}
	section("Threads, as the kernel sees them", threads)
	return f
}

// lookInside finds the stacks of a program that does not tell them.
func (f *finding) lookInside(ctx context.Context, w Worker, section func(title, text string)) {
	pid := programPid(w)
	program := programOf(pid)
	f.dumps = program != programOther && pid == w.Pid && !isSuspended(pid) &&
		proc.Process{Pid: pid}.Handles(syscall.SIGABRT)
	stacks, err := dumped(ctx, w)
	if stacks != "" {
		section("Stacks that it wrote on a signal", stacks)
		f.setStack(pid, pythonFrames(stacks))
		return
	}
	if err != nil {
		section("No stacks on a signal", err.Error())
	}
	switch program {
	case programPython:
		if err == nil { // otherwise the program has called gorun.progress, and does not take the signal
			f.hint = pythonHint
		}
		if stacks, err := pySpy(ctx, pid); err == nil {
			section("Stacks (py-spy)", stacks)
			f.setStack(pid, pySpyFrames(stacks))
		} else if !errors.Is(err, errNoPySpy) {
			section("No stacks from py-spy", err.Error())
		}
	case programGo:
		f.hint = goHint
	case programOther:
	}
}

// A program is the language in which a process is written.
type program int

const (
	programOther program = iota
	programPython
	programGo
)

var errNoPySpy = errors.New("there is no py-spy")

// How to see stacks.
const (
	pythonHint = "Python stacks are seen if the program calls gorun.progress, or with py-spy on PATH: see docs/hang.md"
	goHint     = "a Go program that does not use package comm shows its stacks on SIGABRT only, which ends it"
)

func (f *finding) setStack(pid int, frames []frame) {
	if len(frames) > 0 {
		f.stack, f.waiting, f.hint = inOneLine(frames), areWaiting(pid, frames), ""
		f.set(inOneLine(frames[:1]))
	}
}

func (f *finding) set(frame string) {
	if frame != "" {
		f.doing = "it was in " + frame
	}
}

// describe says what a status says.
func describe(s *progress.Status) string {
	text := s.Activity + "\n"
	for _, w := range s.Waits {
		text += fmt.Sprintf("rank %d waits for rank %d in %s\n", w.Rank, w.For, w.In)
	}
	if s.Suspect != nil {
		text += fmt.Sprintf("rank %d: %s\n", s.Suspect.Rank, s.Suspect.Text)
	}
	return text
}

func write(workers []Worker, found []finding, dir string) error {
	var errs []error
	var flights []json.RawMessage
	for i, w := range workers {
		if w.Pid == 0 {
			continue
		}
		path := filepath.Join(dir, fmt.Sprint(w.LocalRank), StacksFile)
		text := found[i].text
		if len(text) > maxFile {
			text = text[:maxFile-len(cutNote)] + cutNote
		}
		errs = append(errs, writeFile(path, text))
		flights = append(flights, found[i].flights...)
	}
	if len(flights) > 0 {
		errs = append(errs, writeFile(filepath.Join(dir, FlightsFile), merge(flights)))
	}
	return errors.Join(errs...)
}

// writeFile replaces a file, whatever a worker may have put in its place.
func writeFile(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
