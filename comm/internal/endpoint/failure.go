package endpoint

import (
	"encoding/json"
	"fmt"
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
	// Left says that a member closed the group or its world while it was still needed.
	Left FailureKind = "left"
)

// A Failure is why an operation or a whole lane has ended. The first failure of a lane is told to all members,
// so every rank reports the same cause.
type Failure struct {
	Kind  FailureKind `json:"kind"`
	Rank  int         `json:"rank"` // world rank at fault
	Text  string      `json:"text"`
	Calls []RankCall  `json:"calls,omitempty"`
	Err   error       `json:"-"` // the local cause, for errors.Is; not sent
}

// A RankCall is the call of one rank, and its number in the group. Where two calls are alike, Bytes is the length of the
// message that the first one's rank awaits from the second one's, and of the one that it gets.
type RankCall struct {
	Rank  int    `json:"rank"`
	Seq   uint64 `json:"seq"`
	Call  Call   `json:"call"`
	Bytes int    `json:"bytes,omitempty"`
}

func (f *Failure) Error() string { return fmt.Sprintf("rank %d: %s", f.Rank, f.Text) }

func (f *Failure) Unwrap() error { return f.Err }

// abortLimit bounds the document of an abort frame, in bytes.
const abortLimit = 8 << 10

// encode returns f as an abort frame's document, its text cut to fit.
func (f *Failure) encode() []byte {
	g := *f
	if len(g.Text) > abortLimit/8 { // JSON may write a byte as six
		g.Text = g.Text[:abortLimit/8]
	}
	b, err := json.Marshal(&g)
	if err != nil {
		panic(err) // numbers and strings cannot fail
	}
	return b
}

// decodeFailure reads an abort document that came from peer. Whatever is wrong with it, the result is a failure.
func decodeFailure(b []byte, peer, size int) *Failure {
	f := &Failure{}
	if err := json.Unmarshal(b, f); err != nil || f.Rank < 0 || f.Rank >= size || len(f.Calls) > 2 {
		return &Failure{Kind: Aborted, Rank: peer, Text: "aborted the group and sent no readable reason"}
	}
	switch f.Kind {
	case PeerFailed, Aborted, Mismatched, Left:
		return f
	}
	return &Failure{Kind: Aborted, Rank: peer, Text: f.Text}
}
