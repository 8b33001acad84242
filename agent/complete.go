package agent

import (
	"errors"
	"path/filepath"
	"time"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/rendezvous"
)

// complete adds to a worker's failure what the machine does not know, and writes the error file if the user wants one.
func (l *loop) complete(err error) {
	w, ok := errors.AsType[*WorkerError](err)
	if !ok {
		return
	}
	l.completeFailure(w)
	if err := w.writeErrorFile(l.ErrorFile); err != nil {
		l.Logger.Warn("the error file was not written", "file", l.ErrorFile, "error", Bare(err))
	}
}

// completeFailure adds what this node knows about its failed workers. The exit code of a job on several nodes remains that of the
// reported failure, so that all nodes agree, even if this node finds that another worker is the root cause.
func (l *loop) completeFailure(w *WorkerError) {
	w.Program, w.Python, w.Host = l.Program, l.Python, l.Node.Host
	if l.round == nil {
		w.SummaryHost = w.summaryHost(nil, nil)
		return
	}
	closed, decided := errors.AsType[*rendezvous.ClosedError](l.round.Err())
	w.SummaryHost = w.summaryHost(l.round, closed)
	if w.Elsewhere == nil || decided {
		w.Restarts, w.MaxRestarts = l.round.Restarts, l.MaxRestarts
	}
	w.ErrorFiles = readErrorFiles(l.Config, l.round, w.failed())
	w.Flights = flightFiles(l.Config, l.round)
	w.findRootCause()
	if w.Root.Cause == death.Hang {
		w.Where, w.Tied = l.where(), l.tied
	}
	if decided && l.round.Size > 1 {
		w.Code = closed.Outcome.Code
	}
}

// readErrorFiles reads the error files of failed workers of a round.
func readErrorFiles(c Config, round *rendezvous.Round, failed []death.Death) map[int]ErrorFile {
	file := func(local int) string { return errorFile(c, round.Restarts, local) }
	if file(0) == "" {
		return make(map[int]ErrorFile)
	}
	return readErrorFilesOf(failed, file)
}

// flightFiles returns a pattern for the flight files of a round, which package comm writes next to error files; empty:
// there are none. It takes errorFileTimeout at most.
func flightFiles(c Config, round *rendezvous.Round) string {
	dir := attemptDir(c, round.Restarts)
	if dir == "" {
		return ""
	}
	pattern := filepath.Join(dir, "*", "flight.json")
	names, _ := within(errorFileTimeout, func() []string {
		names, _ := filepath.Glob(pattern) // the pattern is good, unless the directory's name is one
		return names
	})
	if len(names) == 0 {
		return ""
	}
	return pattern
}

// within calls do, which uses a file system that may not answer. After limit, it returns without waiting for do, and inTime is
// false.
func within[T any](limit time.Duration, do func() T) (result T, inTime bool) {
	done := make(chan T, 1)
	go func() { done <- do() }()
	select {
	case result = <-done:
		return result, true
	case <-time.After(limit):
		return result, false
	}
}
