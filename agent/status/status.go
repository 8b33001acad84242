// Package status is what agents say about a running job: the documents that they serve and that gorun status --json prints. Its functions
// are pure. docs/status.md describes every field.
package status

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/gorun/gorun/env/progress"
)

// Version is the version of the documents. A program that reads them accepts only the version that it knows.
const Version = 1

// A Job is all that is known of a job: what each of its nodes says.
type Job struct {
	Version  int    `json:"version"`
	ID       string `json:"job"`           // --rdzv-id
	Endpoint string `json:"rdzv_endpoint"` // where its nodes meet; empty: it has one node
	Nodes    []Node `json:"nodes"`         // by node rank; those that are in no round come last
}

// A Node is what one agent knows: of itself, of its workers, and of the job.
type Node struct {
	Version  int       `json:"version"`
	Gorun    string    `json:"gorun"`         // version of gorun
	Job      string    `json:"job"`           // --rdzv-id
	Endpoint string    `json:"rdzv_endpoint"` // where the nodes of the job meet; empty: it has one node
	Program  string    `json:"program"`
	ID       string    `json:"node"` // names it among the nodes of the job
	Host     string    `json:"host"`
	Addr     string    `json:"addr,omitempty"` // where other nodes reach it
	Pid      int       `json:"pid"`            // of its agent
	Started  time.Time `json:"started"`        // the agent
	At       time.Time `json:"at"`             // of this document, by the clock of the node

	State State     `json:"state"`
	Since time.Time `json:"since"` // it is in this state
	Why   string    `json:"why"`

	Waiting *Waiting `json:"waiting,omitempty"` // what the node waits for; null: nothing
	Round   *Round   `json:"round,omitempty"`   // the last one with workers in it; null: there was none
	Workers []Worker `json:"workers"`           // of that round, by local rank
	Failure *Failure `json:"failure,omitempty"` // the last one of a worker of this node; null: none has failed
	Events  []Event  `json:"events"`            // the last ones, the oldest first

	MaxRestarts int    `json:"max_restarts"`
	Logs        string `json:"logs,omitempty"` // directory of log files; empty: there are none

	Stopped bool `json:"-"` // somebody has stopped the job by gorun stop: only its own process knows

	Problem string `json:"problem,omitempty"` // why the agent does not answer: then only what other nodes know of it is set
}

// A State is what an agent does.
type State string

// The states of an agent.
const (
	Joining    State = "joining"    // it waits for a round, or starts workers
	Running    State = "running"    // its workers run
	Diagnosing State = "diagnosing" // a worker of the job hangs, and it finds out what its workers do
	Stopping   State = "stopping"   // its workers are being ended
	Finished   State = "finished"   // its workers have ended, and it waits for what the job makes of that
	Ended      State = "ended"
)

// Waiting is what a node waits for.
type Waiting struct {
	For   string    `json:"for"` // in words
	Since time.Time `json:"since"`
}

// A Round is a round as one of its nodes sees it.
type Round struct {
	ID        int       `json:"round"`
	NodeRank  int       `json:"node_rank"`
	Nodes     int       `json:"nodes"`
	FirstRank int       `json:"first_rank"` // of the node's workers
	WorldSize int       `json:"world_size"`
	Restarts  int       `json:"restarts"` // of --max-restarts, used so far
	Started   time.Time `json:"started"`  // on this node
}

// A Worker is one worker.
type Worker struct {
	Rank      int         `json:"rank"`
	LocalRank int         `json:"local_rank"`
	Pid       int         `json:"pid"`
	State     WorkerState `json:"state"`
	Started   time.Time   `json:"started"`  // this process
	Restarts  int         `json:"restarts"` // processes with this local rank before it
	Exit      *Exit       `json:"exit,omitempty"`
	Doing     string      `json:"doing,omitempty"` // what it does, or did last, as package comm says; empty: not known

	Collectives *progress.Collectives `json:"collectives,omitempty"` // null: it has taken part in none, as far as is known

	ProgressFile string `json:"-"` // beside which it answers questions (see package progress)
}

// A WorkerState says whether a worker runs, and how it has ended.
type WorkerState string

// The states of a worker.
const (
	WorkerRunning   WorkerState = "running"
	WorkerSucceeded WorkerState = "succeeded" // it has exited with code 0
	WorkerFailed    WorkerState = "failed"
	WorkerStopped   WorkerState = "stopped" // gorun has ended it
)

// An Exit is how a worker has ended.
type Exit struct {
	Code   int       `json:"code"`             // exit code; 128+n if signal n has ended it
	Signal int       `json:"signal,omitempty"` // 0: it exited by itself
	Text   string    `json:"text"`             // in words
	At     time.Time `json:"at"`
}

// A Failure is how a worker has failed.
type Failure struct {
	Rank  int       `json:"rank"`
	Round int       `json:"round"`
	Text  string    `json:"text"` // in words
	At    time.Time `json:"at"`
}

// Limits of documents from outside.
const (
	MaxSize    = 16 << 20 // bytes of a document
	maxText    = 64 << 10 // bytes of a text
	maxWorkers = 1 << 20
)

// A VersionError says that a document is of another version of gorun.
type VersionError struct {
	Version int
	Gorun   string // as it says
}

// Error is one line.
func (e *VersionError) Error() string {
	return fmt.Sprintf("it is gorun %q, whose status has version %d, and this gorun reads version %d: use the same gorun", e.Gorun, e.Version, Version)
}

// Decode reads the document of a node. The error is a *VersionError if it is of another version.
func Decode(text []byte) (*Node, error) {
	if len(text) > MaxSize {
		return nil, fmt.Errorf("a status of more than %d bytes", MaxSize)
	}
	var head struct {
		Version int    `json:"version"`
		Gorun   string `json:"gorun"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, fmt.Errorf("not a status: %w", err)
	}
	if head.Version != Version {
		return nil, &VersionError{head.Version, cut(head.Gorun)}
	}
	n := &Node{}
	if err := json.Unmarshal(text, n); err != nil {
		return nil, fmt.Errorf("not a status: %w", err)
	}
	if err := n.check(); err != nil {
		return nil, fmt.Errorf("a status that makes no sense: %w", err)
	}
	return n, nil
}

func cut(text string) string { return text[:min(len(text), 100)] }

// check reports what is wrong with a document from outside.
func (n *Node) check() error {
	texts := []string{n.Job, n.Endpoint, n.Program, n.ID, n.Host, n.Addr, string(n.State), n.Why, n.Logs, n.Problem}
	if n.Waiting != nil {
		texts = append(texts, n.Waiting.For)
	}
	if n.Failure != nil {
		texts = append(texts, n.Failure.Text)
	}
	for _, e := range n.Events {
		texts = append(texts, string(e.Kind), e.Text)
	}
	for i, w := range n.Workers {
		texts = append(texts, string(w.State), w.Doing)
		if w.Exit != nil {
			texts = append(texts, w.Exit.Text)
		}
		if w.LocalRank != i || w.Rank < 0 || w.Pid < 0 {
			return fmt.Errorf("worker %d has local rank %d, rank %d, pid %d", i, w.LocalRank, w.Rank, w.Pid)
		}
	}
	switch {
	case n.Job == "" || n.Host == "" || n.Pid < 1 || n.State == "":
		return errors.New("it lacks the job, the host, the pid or the state")
	case len(n.Workers) > maxWorkers || len(n.Events) > MaxEvents:
		return fmt.Errorf("%d workers, %d events", len(n.Workers), len(n.Events))
	case n.Round != nil && (n.Round.Nodes < 1 || n.Round.NodeRank < 0 || n.Round.NodeRank >= n.Round.Nodes):
		return fmt.Errorf("node %d of %d", n.Round.NodeRank, n.Round.Nodes)
	}
	for _, text := range texts {
		if len(text) > maxText {
			return fmt.Errorf("a text of %d bytes", len(text))
		}
	}
	return nil
}
