// Package diagnosis says why a group does not go on, and which rank is at fault, in words that are the same on every rank. It has the
// failures of groups, and the reports in which ranks say what they wait for. The reports make a wait-for graph. At its end is a suspect,
// or a circle of ranks that wait for each other. The package is pure: no clock, no connection, no lock. Package endpoint sends the reports
// and owns the state.
package diagnosis

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/env/auth"
)

// ErrTimeout is wrapped by errors of operations that took longer than the group's timeout.
var ErrTimeout = errors.New("timed out")

// Kind says why a group has failed.
type Kind string

const (
	// PeerFailed says that a member died, was cut off or did not answer. Failure.Rank is that member.
	PeerFailed Kind = "peer"
	// Aborted says that a member gave up. Failure.Rank is that member.
	Aborted Kind = "abort"
	// Mismatched says that members called different operations, or alike but with lengths that do not fit. Failure.Calls
	// says who called what.
	Mismatched Kind = "mismatch"
	// Deadlocked says that members wait for each other in a circle, which is in Failure.Waits.
	Deadlocked Kind = "deadlock"
	// Absent says that members have not come to a collective that names those: Failure.Missing.
	Absent Kind = "absent"
	// Left says that a member closed the group or its world while it was still needed.
	Left Kind = "left"
)

// A Failure is why an operation or a whole group has ended. The first failure of a group is told to all members,
// so every rank reports the same cause.
type Failure struct {
	Kind    Kind       `json:"kind"`
	Rank    int        `json:"rank"` // world rank at fault
	Text    string     `json:"text"`
	Calls   []RankCall `json:"calls,omitempty"`
	Waits   []Wait     `json:"waits,omitempty"`
	Missing []int      `json:"missing,omitempty"` // world ranks; Text is to what they have not come
	Late    bool       `json:"late,omitempty"`    // a timeout: Err is ErrTimeout on every rank
	Err     error      `json:"-"`                 // the local cause, for errors.Is; not sent

	Remote bool `json:"-"`      // by another rank
	Finder int  `json:"finder"` // world rank that found it out, if Remote

	After time.Duration `json:"after,omitempty"` // how long Missing have been waited for

	// Of calls that differ: up to which collective of the group they are known to be alike, and whether Calls are not the first that
	// differ, but those at which it was found.
	Agreed  uint64 `json:"agreed,omitempty"`
	Earlier bool   `json:"earlier,omitempty"`
}

// A RankCall is the call of one rank, and its number in the group. Where two calls are alike, Bytes is the length of the
// message that the first one's rank awaits from the second one's, and of the one that it gets.
type RankCall struct {
	Rank  int       `json:"rank"`
	Seq   uint64    `json:"seq"`
	Call  call.Call `json:"call"`
	Bytes int       `json:"bytes,omitempty"`
}

func (f *Failure) Error() string {
	if f.Kind == Absent {
		return fmt.Sprintf("ranks %v have not come to %s", f.Missing, f.Text)
	}
	return fmt.Sprintf("rank %d: %s", f.Rank, f.Text)
}

func (f *Failure) Unwrap() error { return f.Err }

// Encode returns f as rank tells it to others, in a document of at most limit bytes: its text and its lists are cut to fit.
func (f *Failure) Encode(rank, limit int) []byte {
	g := *f
	if !f.Remote {
		g.Finder = rank
	}
	if len(g.Text) > limit/8 { // JSON may write a byte as six
		g.Text = g.Text[:limit/8]
	}
	for {
		b := encode(&g)
		if len(b) <= limit {
			return b
		}
		g.Waits, g.Missing = g.Waits[:len(g.Waits)/2], g.Missing[:len(g.Missing)/2]
	}
}

// encode returns v, which consists of numbers and strings, as a document.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // numbers and strings cannot fail
	}
	return b
}

// DecodeFailure reads what peer has encoded, in a world of size. Whatever is wrong with it, the result is a failure.
func DecodeFailure(b []byte, peer, size int) *Failure {
	f := &Failure{}
	isRank := func(r int) bool { return 0 <= r && r < size }
	bad := json.Unmarshal(b, f) != nil || !isRank(f.Rank) || !isRank(f.Finder) || len(f.Calls) > 2
	for _, w := range f.Waits {
		bad = bad || !isRank(w.Rank) || !isRank(w.For)
	}
	for _, r := range f.Missing {
		bad = bad || !isRank(r)
	}
	if bad {
		return &Failure{Kind: Aborted, Rank: peer, Text: "aborted the group and sent no readable reason", Remote: true, Finder: peer}
	}
	f.Text = auth.Printable(f.Text)
	for i := range f.Waits {
		f.Waits[i].In = auth.Printable(f.Waits[i].In)
	}
	f.Remote = true
	if f.Late {
		f.Err = ErrTimeout
	}
	switch f.Kind {
	case PeerFailed, Aborted, Mismatched, Deadlocked, Absent, Left:
		return f
	}
	return &Failure{Kind: Aborted, Rank: peer, Text: f.Text, Remote: true, Finder: f.Finder}
}
