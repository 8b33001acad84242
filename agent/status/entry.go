package status

import "time"

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

// event returns the entry as an event of a snapshot, which has none of the start and the end of processes; ok is false for these.
func (e *Entry) event() (event Event, ok bool) {
	kind := e.Event
	switch {
	case kind == KindJobStarted, kind == KindWorkerStarted, kind == KindWorkerExited, kind == KindJobEnded:
		return Event{}, false
	case e.Cause == CauseHang:
		kind = KindWorkerHangs
	case e.Cause == CauseRevoked:
		kind = KindRoundRevoked
	}
	return Event{At: e.Time, Kind: kind, Rank: e.Rank, Text: e.Text}, true
}
