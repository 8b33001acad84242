package agent

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gorun/gorun/agent/status"
	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/rendezvous"
)

// A history is what snapshots say beside what the loop itself knows.
type history struct {
	since   time.Time // the machine is in its state
	events  []status.Event
	failure *status.Failure
	workers []status.Worker // of the last gang, by local rank
}

// statusOf are the names of the machine's states.
var statusOf = map[state]status.State{
	joining: status.Joining, running: status.Running, diagnosing: status.Diagnosing, stopping: status.Stopping,
	waiting: status.Finished, done: status.Ended,
}

// publish publishes a snapshot, if anybody wants one.
func (l *loop) publish() {
	if l.Publish == nil {
		return
	}
	n := l.Status
	n.Version, n.Job, n.Program = status.Version, l.RunID, l.Program
	n.ID, n.Host, n.Addr = l.Node.ID, l.Node.Host, l.Node.Addr
	n.Started, n.State, n.Since, n.Why = l.begun, statusOf[l.machine.state], l.history.since, Printable(l.machine.why)
	n.Failure, n.Events, n.Workers = l.history.failure, l.history.events, slices.Clone(l.history.workers)
	n.MaxRestarts, n.Logs, n.Stopped = l.MaxRestarts, l.Spec.Logs.Dir, l.machine.by.stops()
	if r := l.round; r != nil {
		n.Round = &status.Round{
			ID: r.ID, NodeRank: r.Self, Nodes: r.Size, FirstRank: r.Place.FirstRank, WorldSize: r.Place.WorldSize, Restarts: r.Restarts, Started: l.started,
		}
		n.Addr = r.Node.Addr
	}
	l.Publish(&n)
}

// event adds an event to the history.
func (l *loop) event(kind status.Kind, rank *int, format string, args ...any) {
	e := status.Event{At: time.Now(), Kind: kind, Rank: rank, Text: Printable(fmt.Sprintf(format, args...))}
	l.history.events = status.Add(l.history.events, e)
}

// record adds what has happened to the history.
func (l *loop) record(e event) {
	switch e := e.(type) {
	case started:
		l.recordGang()
		text := fmt.Sprintf("round %d begins with %s and %s", l.round.ID, plural(l.round.Size, "node", "nodes"), plural(l.round.Place.WorldSize, "rank", "ranks"))
		if l.round.Why != "" {
			text += ": " + l.round.Why
		}
		l.event(status.KindRoundFormed, nil, "%s", text)
	case startFailed:
		l.event(status.KindStartFailed, nil, "%v", e.err)
	case workerExited:
		l.recordExit(e.Death)
	case hung:
		l.recordFailure(status.KindWorkerHangs, e.Death)
	case revocation:
		l.recordFailure(status.KindRoundRevoked, e.Death)
	case roundOver:
		text := "the job is over"
		if again, ok := errors.AsType[*rendezvous.NewRoundError](e.err); ok {
			text = again.Why
			for _, gone := range again.Gone {
				l.event(status.KindNodeLost, nil, "%s", gone.Why)
			}
		} else if e.err != nil {
			text = e.err.Error()
		}
		l.event(status.KindRoundOver, nil, "round %d is over: %s", l.round.ID, text)
	case barrierOver:
		l.event(status.KindBarrierPassed, nil, "this node does not wait for the others any more")
	case interrupted:
		l.event(status.KindInterrupted, nil, "%s", death.SignalName(e.sig))
	case timedOut:
		l.event(status.KindInterrupted, nil, "the time of the job is over")
	case commanded:
		l.event(status.KindCommanded, nil, "%s", e.spelling())
	}
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
	}
	if x.Failed() && !x.Stopped {
		l.recordFailure(status.KindWorkerFailed, x)
	}
}

func (l *loop) recordFailure(kind status.Kind, x death.Death) {
	l.event(kind, &x.Rank, "%s", describe(x))
	l.history.failure = &status.Failure{Rank: x.Rank, Round: l.round.ID, Text: Printable(describe(x)), At: time.Now()}
}
