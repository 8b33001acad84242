package agent

import (
	"errors"
	"fmt"
	"time"

	"github.com/gorun/gorun/agent/status"
	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/rendezvous"
)

// emit adds an entry to the history, and passes it on.
func (l *loop) emit(e status.Entry) {
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	e.Time, e.Text = e.Time.UTC(), Printable(e.Text)
	e.Job, e.Host, e.Node = l.RunID, l.Node.Host, l.Node.ID
	if l.round != nil {
		e.Round = l.round.ID
	}
	l.history.events = status.Add(l.history.events, e)
	if l.Emit != nil {
		l.Emit(e)
	}
}

// record emits what has happened.
func (l *loop) record(e event) {
	switch e := e.(type) {
	case started:
		l.recordRound()
	case startFailed:
		l.emit(status.Entry{Event: status.KindStartFailed, Text: e.err.Error()})
	case workerExited:
		l.recordExit(e.Death)
	case hung:
		l.recordFailure(e.Death)
	case revocation:
		l.recordFailure(e.Death)
	case roundOver:
		text := "the job is over"
		if again, ok := errors.AsType[*rendezvous.NewRoundError](e.err); ok {
			text = again.Why
			for _, gone := range again.Gone {
				l.emit(status.Entry{Event: status.KindNodeLost, Text: gone.Why})
			}
		} else if e.err != nil {
			text = e.err.Error()
		}
		l.emit(status.Entry{Event: status.KindRoundOver, Text: fmt.Sprintf("round %d is over: %s", l.round.ID, text)})
	case barrierOver:
		l.emit(status.Entry{Event: status.KindBarrierPassed, Text: "this node does not wait for the others any more"})
	case interrupted:
		l.emit(status.Entry{Event: status.KindInterrupted, Text: death.SignalName(e.sig)})
	case timedOut:
		l.emit(status.Entry{Event: status.KindInterrupted, Text: "the time of the job is over"})
	case commanded:
		l.emit(status.Entry{Event: status.KindCommanded, Text: e.spelling()})
	}
}

// recordRound emits the begin of a round, and the starts of those of its workers that are new.
func (l *loop) recordRound() {
	r := l.round
	text := fmt.Sprintf("round %d begins with %s and %s", r.ID, plural(r.Size, "node", "nodes"), plural(r.Place.WorldSize, "rank", "ranks"))
	if why := r.Because(); why != "" {
		text += ": " + why
	}
	l.emit(status.Entry{
		Event: status.KindRoundFormed, NodeRank: &r.Self, Nodes: r.Size, WorldSize: r.Place.WorldSize, Restarts: &r.Restarts, Text: text,
	})
	before := l.history.workers
	l.recordGang()
	l.history.failed = make(map[int]bool)
	for i, w := range l.history.workers {
		if i >= len(before) || before[i].Pid != w.Pid || before[i].Exit != nil {
			l.emit(ofWorker(status.Entry{Time: w.Started, Event: status.KindWorkerStarted}, &w))
		}
	}
}

func ofWorker(e status.Entry, w *status.Worker) status.Entry {
	e.Rank, e.LocalRank, e.Pid = new(w.Rank), new(w.LocalRank), w.Pid
	return e
}

// recordGang records the workers of a new gang. Those with the pid of the last gang's have survived.
func (l *loop) recordGang() {
	before := l.history.workers
	l.history.workers = nil
	for local, pid := range l.gang.Pids() {
		w := status.Worker{
			Rank: l.round.Place.FirstRank + local, LocalRank: local, Pid: pid, State: status.WorkerRunning, Started: l.started,
			ProgressFile: progressFile(l.Config, local),
		}
		if local < len(before) {
			if last := before[local]; last.Pid == pid && last.Exit == nil {
				w.Started, w.Restarts = last.Started, last.Restarts
			} else {
				w.Restarts = last.Restarts + 1
			}
		}
		l.history.workers = append(l.history.workers, w)
	}
}

func (l *loop) recordExit(x death.Death) {
	if x.LocalRank < len(l.history.workers) {
		w := &l.history.workers[x.LocalRank]
		w.Exit = &status.Exit{Code: x.Code(), Signal: int(x.Signal()), Text: Printable(x.String()), At: x.At}
		switch {
		case x.Stopped:
			w.State = status.WorkerStopped
		case x.Failed():
			w.State = status.WorkerFailed
		default:
			w.State = status.WorkerSucceeded
		}
		exited := status.Entry{
			Time: x.At, Event: status.KindWorkerExited, ExitCode: new(x.Code()), Signal: int(x.Signal()), Text: w.Exit.Text,
		}
		l.emit(ofWorker(exited, w))
	}
	if x.Failed() && !x.Stopped && !l.history.failed[x.Rank] {
		l.recordFailure(x)
	}
}

// recordFailure emits the failure of a worker, which may not have ended.
func (l *loop) recordFailure(x death.Death) {
	l.history.failed[x.Rank] = true
	l.emit(status.Entry{Event: status.KindWorkerFailed, Rank: &x.Rank, Cause: x.FailureCause(), Text: describe(x)})
	l.history.failure = &status.Failure{Rank: x.Rank, Round: l.round.ID, Text: Printable(describe(x)), At: time.Now()}
}
