package status

import (
	"slices"
	"time"

	"github.com/gorun/gorun/env/death"
)

// An Event is something that has happened to the job, as one node has seen it.
type Event struct {
	At   time.Time `json:"at"`
	Kind Kind      `json:"event"`
	Rank *int      `json:"rank,omitempty"` // of the worker that it is about; null: it is about none
	Text string    `json:"text"`           // in words
}

// A Kind says what kind of event it is.
type Kind string

// The kinds of events.
const (
	KindJobStarted    Kind = "job_started"    // gorun has started on this node
	KindRoundFormed   Kind = "round_formed"   // the node's workers are in a new round
	KindRoundOver     Kind = "round_over"     // and that is over
	KindNodeLost      Kind = "node_lost"      // another node of the round has left or is lost
	KindWorkerFailed  Kind = "worker_failed"  // a worker has failed
	KindWorkerHangs   Kind = "worker_hangs"   // a worker makes no progress
	KindRoundRevoked  Kind = "round_revoked"  // a worker has ended its round
	KindCommanded     Kind = "command"        // somebody has asked something of the job, by a command of gorun
	KindInterrupted   Kind = "interrupt"      // a signal ends the job on this node
	KindStartFailed   Kind = "start_failed"   // the next workers could not be started
	KindWorkerStarted Kind = "worker_started" // a worker process has started
	KindWorkerExited  Kind = "worker_exited"  // a worker process has ended
	KindJobEnded      Kind = "job_ended"      // gorun ends on this node
	KindBarrierPassed Kind = "barrier_passed" // the node no longer waits for the others
)

// MaxEvents is how many events a node keeps.
const MaxEvents = 100

// Add returns events and, behind them, an entry, if snapshots have its kind. The result has the last MaxEvents, in a slice of its own if
// Add has changed anything.
func Add(events []Event, entry Entry) []Event {
	e, ok := entry.event()
	if !ok {
		return events
	}
	from := max(0, len(events)+1-MaxEvents)
	return append(slices.Clone(events[from:]), e)
}

// An Entry is something that has happened on a node, and a line of the event log (--event-log).
type Entry struct {
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
	Rank      *int        `json:"rank,omitempty"`
	LocalRank *int        `json:"local_rank,omitempty"`
	Pid       int         `json:"pid,omitempty"`
	Signal    int         `json:"signal,omitempty"` // that has ended it; 0: none
	Cause     death.Cause `json:"cause,omitempty"`  // of a failure

	ExitCode *int   `json:"exit_code,omitempty"` // of a worker that has exited, or of gorun
	Program  string `json:"program,omitempty"`
	Gorun    string `json:"gorun,omitempty"` // its version
	Text     string `json:"text,omitempty"`  // in words
}

// event returns the entry as an event of a snapshot, which has none of the start and the end of processes; ok is false for these.
func (e *Entry) event() (event Event, ok bool) {
	kind := e.Event
	switch {
	case kind == KindJobStarted, kind == KindWorkerStarted, kind == KindWorkerExited, kind == KindJobEnded:
		return Event{}, false
	case e.Cause == death.Hang:
		kind = KindWorkerHangs
	case e.Cause == death.Revoked:
		kind = KindRoundRevoked
	}
	return Event{At: e.Time, Kind: kind, Rank: e.Rank, Text: e.Text}, true
}
