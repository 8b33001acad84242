package diagnosis

import (
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"
)

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
	if l.HasLeft {
		return l.Cause.RootOf(&Failure{Kind: Left, Rank: l.Rank, Text: "has left (closed its world)"}, now)
	}
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		return &Failure{Kind: Aborted, Rank: rank, Text: fmt.Sprintf("it has no descriptor left to reach rank %d: %v", l.Rank, err)}
	}
	isRefused := errors.Is(err, syscall.ECONNREFUSED)
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
	case PeerFailed, Left:
	case Aborted:
		root.Text = "aborted another group: " + first.Text
	case Mismatched, Deadlocked, Absent: // in which nobody is at fault for certain
		root = &Failure{Kind: f.Kind, Rank: f.Rank, Text: f.Text + "; on another group it had failed before: " + first.Error(), Err: f.Err}
	}
	return root
}
