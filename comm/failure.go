package comm

import (
	"context"
	"errors"
	"fmt"

	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/endpoint"
	"github.com/gorun/gorun/comm/internal/matching"
	"github.com/gorun/gorun/comm/internal/worker"
)

// public returns err, which comes from below the API, as an error of this package.
func public(err error) error {
	if err == nil { // short, so that the compiler inlines it
		return nil
	}
	return translated(err)
}

func translated(err error) error {
	e, ok := errors.AsType[*core.Error](err)
	switch {
	case !ok:
		return err
	case e.Kind == core.BadObject:
		return &ObjectError{Rank: e.Rank, Op: e.Op, Seq: e.Seq, Err: e.Err}
	case e.Kind == core.BadArgument && errors.Is(e, core.ErrNoGroup):
		return &ArgumentError{Op: e.Op, Err: errNoGroup()}
	case e.Kind == core.BadArgument:
		return &ArgumentError{Op: e.Op, Err: e.Err}
	}
	err = failure(e)
	if !errors.Is(err, ErrClosed) {
		process.Note(err, e.Group.World.WithDeath != nil)
	}
	return err
}

// failure is e, the error of a call on a group, as the package's own.
func failure(e *core.Error) error {
	op, seq, g := e.Op, e.Seq, e.Group
	if short, ok := errors.AsType[*matching.TruncateError](e.Err); ok {
		return &TruncateError{Source: short.Source, Got: short.Got / e.Elem, Room: short.Room / e.Elem}
	}
	f, ok := errors.AsType[*diagnosis.Failure](e.Err)
	if !ok {
		return fmt.Errorf("comm: %s: %w", callName(op, seq), e.Err)
	}
	if withDeath := g.World.WithDeath; withDeath != nil {
		f = withDeath(f)
	}
	cause := f.Err
	if cause == nil || f.Kind == diagnosis.PeerFailed && !errors.Is(cause, ErrTimeout) {
		cause = errors.New(f.Text)
	} else if errors.Is(cause, ErrTimeout) {
		cause = fmt.Errorf("%w after %v: %s", cause, g.Timeout, f.Text)
	}
	me := g.World.Rank
	switch f.Kind {
	case diagnosis.Mismatched:
		return mismatch(e, f)
	case diagnosis.Aborted:
		_, polled := errors.AsType[*endpoint.PolledError](cause)
		if f.Rank == me && (polled || errors.Is(cause, context.Canceled) || errors.Is(cause, context.DeadlineExceeded)) {
			return fmt.Errorf("comm: %s: %w", callName(op, seq), cause)
		}
		return &AbortError{Rank: f.Rank, Op: op, Seq: seq, Err: cause, own: f.Rank == me}
	case diagnosis.Revoked:
		return fmt.Errorf("comm: %s: %w", callName(op, seq), cause)
	case diagnosis.Deadlocked:
		return deadlock(e, f)
	case diagnosis.Absent:
		return absent(e, f)
	case diagnosis.PeerFailed, diagnosis.Closed:
	}
	switch {
	case f.Rank == matching.AnySource:
		return fmt.Errorf("comm: %s from any rank: %w", callName(op, seq), cause)
	case errors.Is(cause, ErrClosed):
		return fmt.Errorf("comm: %s: %w", callName(op, seq), cause)
	case f.Remote && f.Rank == me: // this rank need not agree
		return &AbortError{Rank: f.Finder, Op: op, Seq: seq, Err: fmt.Errorf("it found this rank at fault: %w", cause), selfAtFault: true}
	}
	who := g.World.Peers[f.Rank]
	p := &PeerError{Rank: f.Rank, Host: who.Host, PID: who.PID, Op: op, Seq: seq, Err: cause, Finder: me, remote: f.Remote}
	if died, ok := errors.AsType[*worker.DeathError](f.Err); ok {
		p.Death = deathOf(died.Death)
	}
	if f.Remote {
		p.Finder = f.Finder
	}
	// The rank that has found it may be stopped, because another one has ended, before it can tell its agent.
	if f.NoAnswer() && (!f.Remote || g.World.Peers[f.Finder].SameNetwork(g.World.Peers[me].Place)) {
		p.Addr = who.Addr
	}
	return p
}

// mismatch is e when members have called different things.
func mismatch(e *core.Error, f *diagnosis.Failure) error {
	m := &MismatchError{Op: e.Op, Seq: e.Seq}
	calls, first, last := e.Differ(f)
	for _, c := range calls {
		m.Calls = append(m.Calls, RankCall(c))
	}
	m.First, m.Last = first, last
	return m
}

func deadlock(e *core.Error, f *diagnosis.Failure) error {
	d := &DeadlockError{Op: e.Op, Seq: e.Seq, Err: fmt.Errorf("%w after %v: %s", ErrTimeout, e.Group.Timeout, f.Text)}
	for _, w := range f.Waits {
		d.Waits = append(d.Waits, Wait(w))
	}
	return d
}

// absent is e when members did not come to a collective that names them.
func absent(e *core.Error, f *diagnosis.Failure) error {
	m := &MissingRanksError{Missing: f.Missing, Size: e.Group.Size(), Where: f.Text, After: f.After, Err: ErrTimeout, group: e.Group}
	for _, w := range f.Waits {
		m.Waits = append(m.Waits, Wait(w))
	}
	return fmt.Errorf("comm: %s: %s%w", callName(e.Op, e.Seq), found(f.Remote, f.Finder), m)
}
