package progress

import (
	"encoding/json"
	"errors"
	"time"
)

// MaxStatus is how many bytes of a Status are read.
const MaxStatus = 8 << 20

// A Status is what a worker says of itself.
type Status struct {
	Pid  int `json:"pid"`
	Rank int `json:"rank"`
	// Operation says that the worker is in an operation with other ranks.
	Operation bool `json:"operation,omitempty"`
	// Stalled says that it has waited in it for others for a while.
	Stalled bool `json:"stalled,omitempty"`
	// Waits lead from this rank to the one that it waits for, and so on, as far as it knows.
	Waits []Wait `json:"waits,omitempty"`
	// Suspect is the rank at the end of Waits; nil if Waits is empty or a circle.
	Suspect *Suspect `json:"suspect,omitempty"`
	// Activity is what the worker does, or did last, in words.
	Activity string `json:"activity,omitempty"`
	// Collectives is what the worker moves in collectives; nil: there was none.
	Collectives *Collectives `json:"collectives,omitempty"`
	// Pace is how fast it goes from one collective to the next; nil: there were too few.
	Pace *Pace `json:"pace,omitempty"`

	Stacks  string            `json:"stacks,omitempty"`  // of all threads or goroutines, if asked for
	Flights []json.RawMessage `json:"flights,omitempty"` // the flight recorders of its groups (comm.Flight), if asked for
}

// A Wait says that one rank waits for another.
type Wait struct {
	Rank int    `json:"rank"`
	For  int    `json:"for"`
	In   string `json:"in"` // such as "AllReduce #17"
}

// A Suspect is the rank that holds up the others.
type Suspect struct {
	Rank int    `json:"rank"`
	Text string `json:"text"` // what it does
}

// A Pace is how long a rank takes between the collectives of a group.
type Pace struct {
	Group      string        `json:"group"`      // the same for all its ranks
	Operations uint64        `json:"operations"` // so far
	Between    time.Duration `json:"between"`    // the median of the last ones, from the end of one to the beginning of the next
	Samples    int           `json:"samples"`    // how many these are
}

// Collectives is how many collectives a worker takes part in, and how many bytes it moves in them, in the time from the first of the
// last 64 of each group until now.
type Collectives struct {
	PerSecond         float64 `json:"per_second"`
	SentPerSecond     float64 `json:"sent_bytes_per_second"` // to other ranks, through the network or memory
	ReceivedPerSecond float64 `json:"received_bytes_per_second"`
}

const (
	maxWaits = 1024
	maxText  = 4096
)

// check reports what is wrong with a document from outside.
func (s *Status) check() error {
	switch {
	case len(s.Waits) > maxWaits:
		return errors.New("it has too many waits")
	case s.Pace != nil && (len(s.Pace.Group) > maxText || s.Pace.Between < 0):
		return errors.New("its pace makes no sense")
	case s.Collectives != nil && min(s.Collectives.PerSecond, s.Collectives.SentPerSecond, s.Collectives.ReceivedPerSecond) < 0:
		return errors.New("its collectives make no sense")
	case len(s.Activity) > maxText || s.Suspect != nil && len(s.Suspect.Text) > maxText:
		return errors.New("a text of it is too long")
	}
	for _, w := range s.Waits {
		if w.Rank < 0 || w.For < 0 || len(w.In) > maxText {
			return errors.New("a wait of it makes no sense")
		}
	}
	return nil
}
