package comm

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/flight"
)

// A Flight is the flight recorder of a group on one rank: its last 64 collectives, and its last 64 sends and receives.
type Flight struct {
	Rank        int          `json:"rank"`             // this rank in the world
	Group       []int        `json:"group"`            // world ranks
	Failed      string       `json:"failed,omitempty"` // why, if it has
	Waits       []FlightWait `json:"waits,omitempty"`  // those of this rank that have lasted a second or more
	Collectives []FlightCall `json:"collectives"`      // oldest first
	Transfers   []FlightCall `json:"transfers"`        // sends and receives, oldest first
}

// A FlightCall is one operation of a [Flight].
type FlightCall struct {
	Seq      uint64    `json:"seq"`  // as in errors
	Call     string    `json:"call"` // such as "AllReduce(float32 × 8, Sum)"
	Op       string    `json:"op"`
	Type     string    `json:"type,omitempty"`
	Count    uint64    `json:"count,omitempty"` // elements, if the number is the same on all ranks
	Peer     *int      `json:"peer,omitempty"`  // world rank of a send or receive; -1: any
	Tag      *int      `json:"tag,omitempty"`
	Sent     uint64    `json:"sent"` // bytes so far
	Received uint64    `json:"received"`
	State    string    `json:"state"` // "under way", "done" or "failed"
	Began    time.Time `json:"began"`
	Seconds  float64   `json:"seconds"` // its duration, so far if it is under way
	Error    string    `json:"error,omitempty"`
}

// A FlightWait is a wait that has lasted a second or more.
type FlightWait struct {
	For int    `json:"for"` // world rank; -1: any
	In  string `json:"in"`  // such as "AllReduce #17"
}

// Flight returns the flight recorder of g on this rank. You may call it at any time, also when g has failed or hangs.
func (g *Group) Flight() Flight {
	if g == nil {
		return Flight{}
	}
	from := g.core.Comm.Flight()
	f := Flight{Rank: g.world.Rank, Group: g.Ranks(), Collectives: flightCalls(from.Collectives, false), Transfers: flightCalls(from.Transfers, true)}
	if from.Err != nil {
		f.Failed = from.Err.Error()
	}
	for _, w := range from.Waits {
		f.Waits = append(f.Waits, FlightWait{For: w.For, In: w.In})
	}
	return f
}

func flightCalls(records []flight.Record, transfers bool) []FlightCall {
	calls := make([]FlightCall, len(records))
	for i, r := range records {
		kind := r.Call.Kind
		c := FlightCall{
			Seq: r.Seq, Call: call.Describe(r.Call), Op: kind.String(), Sent: r.Sent, Received: r.Received,
			Began: r.Began, State: "under way", Seconds: time.Since(r.Began).Seconds(),
		}
		if c.Type = call.TypeName(r.Call); c.Type != "" && kind.HasCount() {
			c.Count = r.Call.Count
		}
		if transfers {
			c.Peer, c.Tag = &records[i].Peer, &records[i].Tag
		}
		if !r.Ended.IsZero() {
			c.State, c.Seconds = "done", r.Ended.Sub(r.Began).Seconds()
		}
		if r.Err != nil {
			c.State, c.Error = "failed", r.Err.Error()
		}
		calls[i] = c
	}
	return calls
}

// openGroups has the groups of this process that are not closed.
type openGroups struct {
	mu     sync.Mutex
	groups []*Group
}

var open openGroups

func (o *openGroups) add(g *Group) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.groups = append(o.groups, g)
}

// remove removes g and, if it is a world, all groups made of it, and returns what it has removed.
func (o *openGroups) remove(g *Group) (removed []*Group) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.groups = slices.DeleteFunc(o.groups, func(other *Group) bool {
		if !g.includes(other) {
			return false
		}
		removed = append(removed, other)
		return true
	})
	return removed
}

// includes reports whether other is g or, if g is a world, a group made of it.
func (g *Group) includes(other *Group) bool {
	return other == g || g != nil && g.isWorld && other.world == g.world
}

func (o *openGroups) all() []*Group {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.groups)
}

// WriteFlight writes the [Flight] of every open group of this process to w, in JSON, one a line.
func WriteFlight(w io.Writer) error {
	enc := json.NewEncoder(w)
	for _, g := range open.all() {
		if err := enc.Encode(g.Flight()); err != nil {
			return err
		}
	}
	return nil
}

// flightName is the name of a flight file beside a worker's error file, where gorun finds it.
const flightName = "flight.json"

// A flightFile gets the flights of the groups of this process that fail, one a line. It is beside the worker's error file of the present
// round, or else a temporary file.
type flightFile struct {
	mu   sync.Mutex
	path string // of the temporary file; empty: it has not been created yet
}

var failedFlights flightFile

// add writes f, and returns the path of the file.
func (file *flightFile) add(f Flight) (path string, err error) {
	text, err := json.Marshal(f)
	if err != nil {
		return "", err
	}
	file.mu.Lock()
	defer file.mu.Unlock()
	out, err := file.open()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = out.Write(append(text, '\n'))
	return out.Name(), err
}

func (file *flightFile) open() (*os.File, error) {
	if beside := errorFile(); beside != "" {
		return os.OpenFile(filepath.Join(filepath.Dir(beside), flightName), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	}
	if file.path != "" {
		return os.OpenFile(file.path, os.O_WRONLY|os.O_APPEND, 0)
	}
	out, err := os.CreateTemp("", "gorun-flight-*.json")
	if err == nil {
		file.path = out.Name()
	}
	return out, err
}

// saveFlight writes g's flight to the file, once for a group. It does not if err says that a rank has died or aborted the group, because
// the calls of the group do not explain that. It logs one line if gorun does not name the file in its summary.
func (g *Group) saveFlight(err error) {
	f, ok := errors.AsType[*diagnosis.Failure](err)
	if !ok || !f.Late && f.Kind != diagnosis.Mismatched || g.core.Comm.Err() == nil {
		return
	}
	g.logged.Do(func() {
		log, ranks := g.world.Log, g.Size()
		path, err := failedFlights.add(g.Flight())
		switch {
		case err != nil:
			log.Warn("the group has failed, and its flight recorder cannot be written", "ranks", ranks, "error", err)
		case errorFile() != "":
			log.Debug("the group has failed", "ranks", ranks, "flight_recorder", path)
		default:
			log.Warn("the group has failed", "ranks", ranks, "flight_recorder", path)
		}
	})
}
