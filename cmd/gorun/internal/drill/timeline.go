package drill

import (
	"cmp"
	"slices"
	"time"
)

// A Timeline is what processes did, each in a track of its own, and when. Times are in milliseconds since the fault.
type Timeline struct {
	Tracks []Track `json:"tracks"`
}

// bounds are when the recording began, or the fault if that was before, and when it ended.
func (t *Timeline) bounds() (from, to float64) {
	for _, track := range t.Tracks {
		for _, s := range track.Spans {
			from, to = min(from, s.From), max(to, s.To)
		}
	}
	return from, to
}

// A Track shows the agent of a node, one of its workers after the other, or a member of etcd.
type Track struct {
	Name  string `json:"name"`
	Node  *int   `json:"node,omitempty"`       // nil: it shows a member of etcd
	Local *int   `json:"local_rank,omitempty"` // of workers; nil: it shows an agent
	Spans []Span `json:"spans"`
}

// A Span is a time for which nothing changed.
type Span struct {
	From  float64 `json:"from_ms"`
	To    float64 `json:"to_ms"`
	State State   `json:"state"`
	Pid   int     `json:"pid"`
	Round int     `json:"round,omitempty"` // of workers
	Rank  *int    `json:"rank,omitempty"`  // of workers

	from, to time.Time // while it is being recorded; to is zero while it lasts
}

// A State is what a process does.
type State string

// The states. The first four are those of workers.
const (
	Joining   State = "joining"   // it waits for the others, in a round that it knows
	Computing State = "computing" // with the others
	Waiting   State = "waiting"   // an operation has failed, and it waits for another round, or for its end
	Stopping  State = "stopping"  // it got SIGTERM
	Running   State = "running"   // an agent, or a member of etcd
	Suspended State = "suspended" // by SIGSTOP
	CutOff    State = "cut off"   // from the network
)

// A timeline is a Timeline that is being recorded.
type timeline struct{ tracks []*Track }

// workers returns the track of the workers of a node with a local rank.
func (t *timeline) workers(node, local int) *Track {
	return t.find(Track{Node: &node, Local: &local})
}

func (t *timeline) find(want Track) *Track {
	i, found := slices.BinarySearchFunc(t.tracks, want, func(a *Track, b Track) int { return compareTracks(*a, b) })
	if !found {
		t.tracks = slices.Insert(t.tracks, i, &want)
	}
	return t.tracks[i]
}

// compareTracks orders tracks by node, etcd last, and an agent before its workers.
func compareTracks(a, b Track) int {
	number := func(n *int, none int) int {
		if n == nil {
			return none
		}
		return *n
	}
	const most = 1 << 30
	return cmp.Or(cmp.Compare(number(a.Node, most), number(b.Node, most)), cmp.Compare(number(a.Local, -1), number(b.Local, -1)), cmp.Compare(a.Name, b.Name))
}

// set begins a state, which ends the one before. No state means that the process has ended.
func (t *Track) set(at time.Time, s Span) {
	if n := len(t.Spans); n > 0 && t.Spans[n-1].to.IsZero() {
		last := &t.Spans[n-1]
		switch {
		case s.State == "" && s.Pid != last.Pid: // another one has begun before this one was known to have ended
			return
		case s.State == last.State && s.Pid == last.Pid && s.Round == last.Round:
			return
		}
		last.to = at
	}
	if s.State != "" {
		s.from = at
		t.Spans = append(t.Spans, s)
	}
}

// state returns the present state; empty: there is no process.
func (t *Track) state() State {
	if n := len(t.Spans); n > 0 && t.Spans[n-1].to.IsZero() {
		return t.Spans[n-1].State
	}
	return ""
}

// since returns what has been recorded until the end, with times since an origin.
func (t *timeline) since(origin, end time.Time) Timeline {
	out := Timeline{Tracks: []Track{}}
	for _, recorded := range t.tracks {
		track := *recorded
		track.Spans = []Span{}
		for _, s := range recorded.Spans {
			if s.from.After(end) {
				break
			}
			if s.to.IsZero() || s.to.After(end) {
				s.to = end
			}
			s.From, s.To = milliseconds(s.from.Sub(origin)), milliseconds(s.to.Sub(origin))
			track.Spans = append(track.Spans, s)
		}
		out.Tracks = append(out.Tracks, track)
	}
	return out
}
