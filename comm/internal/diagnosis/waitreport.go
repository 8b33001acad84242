package diagnosis

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/gorun/gorun/comm/internal/call"
)

const (
	// MaxText bounds each text in a report, in bytes.
	MaxText = 512
	// longestChain is the most waits, one for the next, that are told.
	longestChain = 64
)

// A Wait is one rank's for another.
type Wait struct {
	Rank int    `json:"rank"`
	For  int    `json:"for"`
	In   string `json:"in"` // such as "AllReduce #17"
}

// An Activity says what a rank does or does not do, and, unless Ago is 0, since when.
type Activity struct {
	Text string        `json:"text"`
	Ago  time.Duration `json:"ago,omitempty"`
}

// A Suspect is the rank that holds up the others, and by what.
type Suspect struct {
	Rank int `json:"rank"`
	Activity
}

// A WaitReport is what a rank says to one that waits for it in a group.
type WaitReport struct {
	Seq      uint64           `json:"seq"` // the last collective that it has begun there
	At       call.Fingerprint `json:"at"`  // the collective that it was asked about, if it remembers that, or the last one
	Activity Activity         `json:"activity"`
	Chain    []Wait           `json:"chain,omitempty"`   // its own wait, and that of the rank which it waits for, and so on
	Suspect  *Suspect         `json:"suspect,omitempty"` // who is at the end of Chain; nil if that is a circle
}

// Since is what began at t.
func Since(now, t time.Time, format string, args ...any) Activity {
	return Activity{fmt.Sprintf(format, args...), max(now.Sub(t), 1)}
}

// aged is a, which was said some time ago, as it is now.
func (a Activity) aged(by time.Duration) Activity {
	if a.Ago > 0 {
		a.Ago += by
	}
	return a
}

func (a Activity) String() string {
	if a.Ago == 0 {
		return a.Text
	}
	return fmt.Sprintf("%s %v ago", a.Text, a.Ago.Round(time.Millisecond))
}

// isNews reports whether r gives another reason for a wait than last, the report before it, which may be nil.
func (r *WaitReport) isNews(last *WaitReport) bool {
	if last == nil || r.Activity.Text != last.Activity.Text || (r.Suspect == nil) != (last.Suspect == nil) {
		return true
	}
	return !slices.Equal(r.Chain, last.Chain) ||
		r.Suspect != nil && (r.Suspect.Rank != last.Suspect.Rank || r.Suspect.Text != last.Suspect.Text)
}

// Encode returns r in a document of at most limit bytes: its chain is cut to fit.
func (r *WaitReport) Encode(limit int) []byte {
	r.Chain = r.Chain[:min(len(r.Chain), longestChain)]
	for {
		b := encode(r)
		if len(b) <= limit {
			return b
		}
		r.Chain = r.Chain[:len(r.Chain)/2]
	}
}

// DecodeWaitReport reads a report, in a world of size. nil: nonsense.
func DecodeWaitReport(b []byte, size int) *WaitReport {
	r := &WaitReport{}
	good := func(rank int, text string) bool { return 0 <= rank && rank < size && len(text) <= MaxText }
	if json.Unmarshal(b, r) != nil || len(r.Chain) > longestChain || !good(0, r.Activity.Text) ||
		r.Suspect != nil && !good(r.Suspect.Rank, r.Suspect.Text) ||
		slices.ContainsFunc(r.Chain, func(w Wait) bool { return !good(w.Rank, w.In) || !good(w.For, "") }) {
		return nil
	}
	return r
}
