// Package eventlog makes a log of what happens to a job on one node: an event for each change from one snapshot of package status to the
// next. It is pure. docs/status.md describes every event.
package eventlog

import (
	"slices"
	"time"

	"github.com/gorun/gorun/agent/status"
)

// A Kind says what has happened.
type Kind string

// The kinds of events.
const (
	JobStarted    Kind = "job_started"    // gorun has started on this node
	RoundFormed   Kind = "round_formed"   // this node is in a new round
	WorkerStarted Kind = "worker_started" // a worker process has started
	WorkerExited  Kind = "worker_exited"  // a worker process has ended
	WorkerFailed  Kind = "worker_failed"  // a worker has failed; it may not have ended yet
	RoundOver     Kind = "round_over"     // the round is over
	NodeLost      Kind = "node_lost"      // another node of the round has left or is lost
	StartFailed   Kind = "start_failed"   // the workers of the next round could not be started
	Interrupt     Kind = "interrupt"      // a signal ends the job on this node
	Command       Kind = "command"        // somebody has given a command, such as gorun restart
	JobEnded      Kind = "job_ended"      // gorun ends on this node
)

// A Cause says why a worker has failed.
type Cause string

// The causes of failures.
const (
	CauseExitCode Cause = "exit_code" // it has exited with a code other than 0
	CauseSignal   Cause = "signal"    // a signal has ended it
	CauseHang     Cause = "hang"      // it made no progress, so gorun has killed it
	CauseRevoked  Cause = "revoked"   // it has ended the round
)

// Causes are all causes of failures.
func Causes() []Cause { return []Cause{CauseExitCode, CauseSignal, CauseHang, CauseRevoked} }

// An Event is one line of the log.
type Event struct {
	Time  time.Time `json:"time"` // in UTC
	Event Kind      `json:"event"`
	Job   string    `json:"job"`
	Host  string    `json:"host"`
	Node  string    `json:"node"`            // names the node among those of the job
	Round int       `json:"round,omitempty"` // 0: before the first round

	// Of a round that has formed:
	NodeRank  *int `json:"node_rank,omitempty"`
	Nodes     int  `json:"nodes,omitempty"`
	WorldSize int  `json:"world_size,omitempty"`
	Restarts  *int `json:"restarts,omitempty"` // of --max-restarts, used so far

	// Of a worker:
	Rank      *int  `json:"rank,omitempty"`
	LocalRank *int  `json:"local_rank,omitempty"`
	Pid       int   `json:"pid,omitempty"`
	Signal    int   `json:"signal,omitempty"` // that has ended it; 0: none
	Cause     Cause `json:"cause,omitempty"`  // of a failure

	ExitCode *int   `json:"exit_code,omitempty"` // of a worker that has exited, or of gorun
	Program  string `json:"program,omitempty"`
	Gorun    string `json:"gorun,omitempty"` // its version
	Text     string `json:"text,omitempty"`  // in words
}

// Changes returns what has happened between two snapshots of a node; before is nil for the first one.
func Changes(before, after *status.Node) []Event {
	if before == nil {
		e := newEvent(after, JobStarted, after.Started)
		e.Program, e.Gorun = after.Program, after.Gorun
		return append([]Event{e}, Changes(&status.Node{}, after)...)
	}
	var list []Event
	for i := range after.Workers {
		w := &after.Workers[i]
		if w.Exit != nil && !hasEnded(before, w) {
			list = append(list, exited(after, w))
		}
	}
	formed := after.Round != nil && (before.Round == nil || before.Round.ID != after.Round.ID)
	for _, i := range added(before.Events, after.Events) {
		if e, ok := translate(after, i); ok {
			list = append(list, e)
		}
	}
	if !formed {
		return list
	}
	for i := range after.Workers {
		w := &after.Workers[i]
		if i >= len(before.Workers) || before.Workers[i].Pid != w.Pid {
			e := ofWorker(newEvent(after, WorkerStarted, w.Started), w)
			list = append(list, e)
		}
	}
	return list
}

// End returns the last event of a job on a node: gorun exits with this code, and text says why. last is nil if nothing has happened.
func End(last *status.Node, at time.Time, code int, text string) Event {
	if last == nil {
		last = &status.Node{}
	}
	e := newEvent(last, JobEnded, at)
	e.ExitCode, e.Text = &code, text
	return e
}

func newEvent(n *status.Node, kind Kind, at time.Time) Event {
	e := Event{Time: at.UTC(), Event: kind, Job: n.Job, Host: n.Host, Node: n.ID}
	if n.Round != nil && kind != JobStarted {
		e.Round = n.Round.ID
	}
	return e
}

func ofWorker(e Event, w *status.Worker) Event {
	e.Rank, e.LocalRank, e.Pid = new(w.Rank), new(w.LocalRank), w.Pid
	return e
}

// hasEnded reports whether this process had ended before.
func hasEnded(before *status.Node, w *status.Worker) bool {
	if w.LocalRank >= len(before.Workers) {
		return false
	}
	was := &before.Workers[w.LocalRank]
	return was.Pid == w.Pid && was.Exit != nil
}

func exited(n *status.Node, w *status.Worker) Event {
	e := ofWorker(newEvent(n, WorkerExited, w.Exit.At), w)
	e.ExitCode, e.Signal, e.Text = new(w.Exit.Code), w.Exit.Signal, w.Exit.Text
	return e
}

// added returns the indices of the events that came after those of before. Old ones may be missing in after.
func added(before, after []status.Event) (indices []int) {
	from := 0
	if len(before) > 0 {
		last := before[len(before)-1]
		for i, e := range slices.Backward(after) {
			if e == last {
				from = i + 1
				break
			}
		}
	}
	for i := from; i < len(after); i++ {
		indices = append(indices, i)
	}
	return indices
}

var kinds = map[status.Kind]Kind{
	status.KindRoundFormed: RoundFormed, status.KindRoundOver: RoundOver, status.KindWorkerFailed: WorkerFailed, status.KindWorkerHangs: WorkerFailed,
	status.KindRoundRevoked: WorkerFailed, status.KindNodeLost: NodeLost, status.KindStartFailed: StartFailed,
	status.KindInterrupted: Interrupt, status.KindCommanded: Command,
}

// translate returns the event that the i-th one of a snapshot is; ok is false if it is none.
func translate(n *status.Node, i int) (e Event, ok bool) {
	from := &n.Events[i]
	kind, ok := kinds[from.Kind]
	if !ok || from.Kind == status.KindWorkerFailed && isKnown(n.Events[:i], *from.Rank) {
		return Event{}, false
	}
	e = newEvent(n, kind, from.At)
	e.Rank, e.Text = from.Rank, from.Text
	if r := n.Round; kind == RoundFormed {
		e.NodeRank, e.Nodes, e.WorldSize, e.Restarts = &r.NodeRank, r.Nodes, r.WorldSize, &r.Restarts
	}
	if kind == WorkerFailed {
		e.Cause = causeOf(n, from)
	}
	return e, true
}

// early are the causes of failures that are reported before the worker has ended.
var early = map[status.Kind]Cause{status.KindWorkerHangs: CauseHang, status.KindRoundRevoked: CauseRevoked}

// isKnown reports whether the failure of a rank in this round has been reported already, before it ended.
func isKnown(earlier []status.Event, rank int) bool {
	for _, e := range slices.Backward(earlier) {
		if e.Kind == status.KindRoundFormed {
			return false
		}
		if early[e.Kind] != "" && *e.Rank == rank {
			return true
		}
	}
	return false
}

func causeOf(n *status.Node, e *status.Event) Cause {
	if cause := early[e.Kind]; cause != "" {
		return cause
	}
	for _, w := range n.Workers {
		if w.Rank == *e.Rank && w.Exit != nil && w.Exit.Signal != 0 {
			return CauseSignal
		}
	}
	return CauseExitCode
}
