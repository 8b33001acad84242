package comm

import (
	"io"
	"slices"
	"time"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/core"
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
	return flightOf(g.core)
}

func flightOf(g *core.Group) Flight {
	from := g.Comm.Flight()
	f := Flight{
		Rank: g.World.Rank, Group: slices.Clone(g.Ranks),
		Collectives: flightCalls(from.Collectives, false), Transfers: flightCalls(from.Transfers, true),
	}
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

// WriteFlight writes the [Flight] of every open group of this process to w, in JSON, one a line.
func WriteFlight(w io.Writer) error { return process.WriteFlights(w) }
