package agent

import (
	"errors"
	"slices"
	"time"

	"github.com/gorun/gorun/launcher"
)

// complete adds to a worker's failure what the machine does not know, and tells those who asked for it.
func (l *loop) complete(err error) error {
	end := result{err: err, begun: l.begun, started: l.started, ended: time.Now(),
		restarts: l.machine.restarts, round: l.round, exits: l.machine.exits}
	if w, ok := errors.AsType[*WorkerError](err); ok {
		w.Program, w.Host, w.Code = l.Program, l.Node.Host, w.Root.Code
		w.Reports = l.readReports(w)
		w.accuse()
		end.reports = w.Reports
		if err := l.reportFailure(w); err != nil {
			l.Logger.Warn("the error file was not written", "file", l.ErrorFile, "error", bare(err))
		}
	}
	if l.Events != nil {
		if _, err := l.Events.Write(events(l.Config, end)); err != nil {
			l.Logger.Warn("the events were not written", "error", err)
		}
	}
	return err
}

// readReports reads what the failed workers of the last gang have left.
func (l *loop) readReports(w *WorkerError) map[int]Report {
	file := func(local int) string { return errorFile(l.Config, w.Restarts, local) }
	if file(0) == "" {
		return nil
	}
	return readReports(slices.Concat([]launcher.Exit{w.Root}, w.Others, w.Stopped), file)
}

// reportFailure hands the root cause to whoever has started this agent.
func (l *loop) reportFailure(w *WorkerError) error {
	if l.ErrorFile == "" {
		return nil
	}
	document, err := w.document()
	if err != nil {
		return err
	}
	return writeErrorFile(l.ErrorFile, document)
}
