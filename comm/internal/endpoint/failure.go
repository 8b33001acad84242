package endpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/gorun/gorun/env/auth"
)

// FailureKind says why a lane has failed.
type FailureKind string

const (
	// PeerFailed says that a member died, was cut off or did not answer. Failure.Rank is that member.
	PeerFailed FailureKind = "peer"
	// Aborted says that a member gave up. Failure.Rank is that member.
	Aborted FailureKind = "abort"
	// Mismatched says that members called different operations, or alike but with lengths that do not fit. Failure.Calls
	// says who called what.
	Mismatched FailureKind = "mismatch"
	// Deadlocked says that members wait for each other in a circle, which is in Failure.Waits.
	Deadlocked FailureKind = "deadlock"
	// Absent says that members have not come to a collective that names those: Failure.Missing.
	Absent FailureKind = "absent"
	// Left says that a member closed the group or its world while it was still needed.
	Left FailureKind = "left"
)

// A Failure is why an operation or a whole lane has ended. The first failure of a lane is told to all members,
// so every rank reports the same cause.
type Failure struct {
	Kind    FailureKind `json:"kind"`
	Rank    int         `json:"rank"` // world rank at fault
	Text    string      `json:"text"`
	Calls   []RankCall  `json:"calls,omitempty"`
	Waits   []Wait      `json:"waits,omitempty"`
	Missing []int       `json:"missing,omitempty"` // world ranks; Text is to what they have not come
	Late    bool        `json:"late,omitempty"`    // a timeout: Err is ErrTimeout on every rank
	Err     error       `json:"-"`                 // the local cause, for errors.Is; not sent

	Told   bool `json:"-"`      // by another rank
	Finder int  `json:"finder"` // world rank that found it out, if Told

	After time.Duration `json:"after,omitempty"` // how long Missing have been waited for

	// Of calls that differ: up to which collective of the group they are known to be alike, and whether Calls are not the first that
	// differ, but those at which it was found.
	Agreed  uint64 `json:"agreed,omitempty"`
	Earlier bool   `json:"earlier,omitempty"`
}

// A RankCall is the call of one rank, and its number in the group. Where two calls are alike, Bytes is the length of the
// message that the first one's rank awaits from the second one's, and of the one that it gets.
type RankCall struct {
	Rank  int    `json:"rank"`
	Seq   uint64 `json:"seq"`
	Call  Call   `json:"call"`
	Bytes int    `json:"bytes,omitempty"`
}

func (f *Failure) Error() string {
	if f.Kind == Absent {
		return fmt.Sprintf("ranks %v have not come to %s", f.Missing, f.Text)
	}
	return fmt.Sprintf("rank %d: %s", f.Rank, f.Text)
}

func (f *Failure) Unwrap() error { return f.Err }

// A protocolError says that a peer has sent what no rank sends.
type protocolError struct{ error }

func (e protocolError) Error() string { return "broke the protocol: " + e.error.Error() }

func (e protocolError) Unwrap() error { return e.error }

// abortLimit bounds the document of an abort frame, in bytes.
const abortLimit = 8 << 10

// encode returns f as an abort frame's document of rank, its text and its lists cut to fit.
func (f *Failure) encode(rank int) []byte {
	g := *f
	if !f.Told {
		g.Finder = rank
	}
	if len(g.Text) > abortLimit/8 { // JSON may write a byte as six
		g.Text = g.Text[:abortLimit/8]
	}
	for {
		b, err := json.Marshal(&g)
		if err != nil {
			panic(err) // numbers and strings cannot fail
		}
		if len(b) <= abortLimit {
			return b
		}
		g.Waits, g.Missing = g.Waits[:len(g.Waits)/2], g.Missing[:len(g.Missing)/2]
	}
}

// decodeFailure reads an abort document that came from peer. Whatever is wrong with it, the result is a failure.
func decodeFailure(b []byte, peer, size int) *Failure {
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
		return &Failure{Kind: Aborted, Rank: peer, Text: "aborted the group and sent no readable reason", Told: true, Finder: peer}
	}
	f.Text = auth.Printable(f.Text)
	for i := range f.Waits {
		f.Waits[i].In = auth.Printable(f.Waits[i].In)
	}
	f.Told = true
	if f.Late {
		f.Err = ErrTimeout
	}
	switch f.Kind {
	case PeerFailed, Aborted, Mismatched, Deadlocked, Absent, Left:
		return f
	}
	return &Failure{Kind: Aborted, Rank: peer, Text: f.Text, Told: true, Finder: f.Finder}
}

// AsFailure is err as the other members are told of it: the failure that it wraps, or else that this rank has given up.
func (l *Lane) AsFailure(err error) *Failure {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	return &Failure{Kind: Aborted, Rank: l.ep.rank, Text: err.Error(), Err: err}
}
