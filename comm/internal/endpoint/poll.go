package endpoint

import (
	"context"
	"time"
)

// pollInterval is how often a wait calls the function of WithPoll.
const pollInterval = 100 * time.Millisecond

// WithPoll returns ctx, of one call, such that its waits that last call poll, in the goroutine that waits: together
// every pollInterval. If poll returns an error, the wait ends as if ctx had ended with a PolledError.
func WithPoll(ctx context.Context, poll func() error) context.Context {
	if poll == nil {
		return ctx
	}
	return &polled{Context: ctx, poll: poll, next: time.Now().Add(pollInterval)}
}

// A PolledError is an error of the function of WithPoll.
type PolledError struct{ Err error }

func (e *PolledError) Error() string { return e.Err.Error() }
func (e *PolledError) Unwrap() error { return e.Err }

type polled struct {
	context.Context
	poll func() error
	next time.Time // when to call it
}

// pollOf returns what WithPoll has added to ctx, or nil.
func pollOf(ctx context.Context) *polled {
	p, _ := ctx.(*polled)
	return p
}

// due returns a channel that receives when it is time to call call.
func (p *polled) due() <-chan time.Time {
	if p == nil {
		return nil
	}
	return time.After(time.Until(p.next))
}

func (p *polled) call() error {
	p.next = time.Now().Add(pollInterval)
	if err := p.poll(); err != nil {
		return &PolledError{err}
	}
	return nil
}

// Await waits until done is closed. If ctx ends first, or polling returns an error, it returns that.
func Await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	default:
	}
	poll := pollOf(ctx)
	due := poll.due()
	for {
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-due:
			if err := poll.call(); err != nil {
				return err
			}
			due = poll.due()
		}
	}
}
