// Package diagnosis says why a group does not go on, and which rank is at fault, in words that are the same on every rank. It has the
// failures of groups, and the reports in which ranks say what they wait for. The reports make a wait-for graph. At its end is a suspect,
// or a circle of ranks that wait for each other. The package is pure: no clock, no connection, no lock. Package endpoint sends the reports
// and owns the state.
package diagnosis

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"syscall"
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
	// Revoked says that the round is over in which the group was made, and not because of a rank that is known to have failed.
	Revoked Kind = "revoked"
	// Closed says that a member closed the group or its world while it was still needed.
	Closed Kind = "left"
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
	Silent  bool       `json:"silent,omitempty"`  // Rank did not answer Finder; see NoAnswer
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

// NoAnswer reports whether Rank did not answer the rank that has found the failure. Then their machines may be cut off
// from each other.
func (f *Failure) NoAnswer() bool {
	if f.Remote {
		return f.Silent
	}
	silence := []error{ErrTimeout, syscall.ETIMEDOUT, syscall.EHOSTUNREACH, syscall.ENETUNREACH}
	timeout, ok := errors.AsType[net.Error](f.Err)
	return ok && timeout.Timeout() || slices.ContainsFunc(silence, func(err error) bool { return errors.Is(f.Err, err) })
}

// Encode returns f as rank tells it to others, in a document of at most limit bytes: its text and its lists are cut to fit.
func (f *Failure) Encode(rank, limit int) []byte {
	g := *f
	if !f.Remote {
		g.Finder, g.Silent = rank, f.NoAnswer()
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
	noRank := func(r int) bool { return r < 0 || r >= size }
	if json.Unmarshal(b, f) != nil || noRank(f.Rank) || noRank(f.Finder) || len(f.Calls) > 2 || slices.ContainsFunc(f.Missing, noRank) ||
		slices.ContainsFunc(f.Waits, func(w Wait) bool { return noRank(w.Rank) || noRank(w.For) }) {
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
	case PeerFailed, Aborted, Mismatched, Deadlocked, Absent, Closed:
		return f
	case Revoked: // members know that by themselves: nobody sends it
	}
	return &Failure{Kind: Aborted, Rank: peer, Text: f.Text, Remote: true, Finder: f.Finder}
}

// A Liveness is what is known of a peer whose stream has ended without goodbye.
type Liveness int

// What may be known.
const (
	Unknown Liveness = iota
	Dead             // its process has ended
	Alive            // its process still runs
)

// A ProtocolError says that a peer has sent what no rank sends.
type ProtocolError struct{ Err error }

func (e ProtocolError) Error() string { return "broke the protocol: " + e.Err.Error() }

func (e ProtocolError) Unwrap() error { return e.Err }

// Lost is what is known of a peer whose stream has broken.
type Lost struct {
	Rank      int
	HasLeft   bool // it has said goodbye
	WasUp     bool // there was a stream
	Liveness  Liveness
	Suspicion string // what the stream has last been suspected of
	LastWait  string // for whom it has waited
	Cause     Cause
}

// Failure is what has become of the peer, as rank finds it out by err.
func (l *Lost) Failure(rank int, err error, now time.Time) *Failure {
	isRefused := errors.Is(err, syscall.ECONNREFUSED)
	if l.HasLeft || isRefused && l.Liveness == Alive { // a process listens until it closes its world
		return l.Cause.RootOf(&Failure{Kind: Closed, Rank: l.Rank, Text: "has left (closed its world)"}, now)
	}
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		return &Failure{Kind: Aborted, Rank: rank, Text: fmt.Sprintf("it has no descriptor left to reach rank %d: %v", l.Rank, err)}
	}
	text := describe(err)
	if !l.WasUp && !isRefused {
		text = err.Error()
	}
	_, isProtocol := errors.AsType[ProtocolError](err)
	switch {
	case isProtocol:
		return &Failure{Kind: PeerFailed, Rank: l.Rank, Text: text, Err: err}
	case l.Liveness == Dead && isRefused: // there was no stream on which it could say goodbye
		text = "its process has ended: it left, or died"
	case l.Liveness == Dead:
		text = "died" + l.LastWait
	case l.Liveness == Alive:
		text += ", though its process still runs"
	case l.Suspicion != "":
		text += ": " + l.Suspicion
	default:
		text += l.LastWait
	}
	return l.Cause.RootOf(&Failure{Kind: PeerFailed, Rank: l.Rank, Text: text, Err: err}, now)
}

// describe puts the error of a broken stream into words. They do not say that the peer has died, which no stream can know.
func describe(err error) string {
	const lost = "the connection to it was lost"
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.ErrClosedPipe):
		return lost + " (closed without goodbye)"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return lost + " (reset)"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nobody listens at its address: it left, or died"
	case errors.Is(err, syscall.ETIMEDOUT), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return lost + " (its machine did not answer for half a minute)"
	}
	return err.Error()
}

// A rank whose operation fails because of another rank mostly ends, and then those that wait for it on other groups find that it
// has died. So it tells every rank that it is connected to, whatever their groups, why its operation has failed. If it is gone soon
// after, that is the root cause of what fails there.

// causeTime is how long after a failure of an operation of a rank the end of that rank counts as its consequence.
const causeTime = 10 * time.Second

// A Cause is why an operation of a rank has failed, through no fault of its own. The zero value is none.
type Cause struct {
	Failure *Failure
	At      time.Time // by this rank's clock
}

// IsRecent reports whether there is a cause, of which what happens now may be a consequence.
func (c *Cause) IsRecent(now time.Time) bool { return c.Failure != nil && now.Sub(c.At) < causeTime }

// RootOf is the failure at the root of f, which says that the rank with cause c is gone: f itself, or c if that is recent.
func (c *Cause) RootOf(f *Failure, now time.Time) *Failure {
	if !c.IsRecent(now) {
		return f
	}
	first := c.Failure
	root := &Failure{Kind: f.Kind, Rank: first.Rank, Text: first.Text, Remote: true, Finder: first.Finder}
	switch first.Kind {
	case PeerFailed, Closed, Revoked:
	case Aborted:
		root.Text = "aborted another group: " + first.Text
	case Mismatched, Deadlocked, Absent: // in which nobody is at fault for certain
		root = &Failure{Kind: f.Kind, Rank: f.Rank, Text: f.Text + "; on another group it had failed before: " + first.Error(), Err: f.Err}
	}
	return root
}
