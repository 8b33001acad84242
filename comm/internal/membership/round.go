package membership

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/gorun/gorun/env"
)

// A Round is one round of this process, and what the agent has said of its end. Its methods may be called from several goroutines.
type Round struct {
	Number int

	over  atomic.Pointer[env.Round]
	final context.Context // ends when the round is over, or the agent says no more
	close context.CancelFunc
}

// NewRound returns a round that has begun.
func NewRound(number int) *Round {
	r := &Round{Number: number}
	r.final, r.close = context.WithCancel(context.Background())
	return r
}

// End records that the round is over. It may be called again, with more that is known.
func (r *Round) End(over env.Round) {
	r.over.Store(&over)
	r.close()
}

// Over returns why the round is over, as far as the agent has said; nil: it is not over.
func (r *Round) Over() *env.Round { return r.over.Load() }

// Final is closed when the round is over, or the agent says no more.
func (r *Round) Final() <-chan struct{} { return r.final.Done() }

// AfterFinal calls f in a goroutine of its own when Final is closed, unless stop is called before.
func (r *Round) AfterFinal(f func()) (stop func() bool) { return context.AfterFunc(r.final, f) }

// During returns a context that ends, with an OverError as its cause, when the round is over.
func (r *Round) During(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := r.AfterFinal(func() {
		if over := r.Over(); over != nil {
			cancel(&OverError{*over})
		}
	})
	return ctx, func() {
		stop()
		cancel(context.Canceled)
	}
}

// state says in words whether the round is over.
func (r *Round) state() string {
	if over := r.Over(); over != nil {
		return (&OverError{*over}).Error()
	}
	return fmt.Sprintf("the agent has not said that round %d is over", r.Number)
}

// An OverError says that a round is over.
type OverError struct{ Round env.Round }

func (e *OverError) Error() string {
	text := fmt.Sprintf("round %d is over", e.Round.Round)
	switch {
	case len(e.Round.Died) > 0:
		d := e.Round.Died[0]
		text += ": " + d.Describe()
	case e.Round.Why != "":
		text += ": " + e.Round.Why
	}
	return text
}
