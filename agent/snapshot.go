package agent

import (
	"slices"
	"time"

	"github.com/gorun/gorun/agent/status"
)

// A history is what snapshots say beside what the loop itself knows.
type history struct {
	since   time.Time // the machine is in its state
	events  []status.Event
	failure *status.Failure
	workers []status.Worker // of the last gang, by local rank
	failed  map[int]bool    // the ranks of the last gang that have failed, as has been said
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
