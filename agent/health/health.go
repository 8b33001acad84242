// Package health checks whether a node is fit to run workers, before it joins a round. A node that is not would only fail the job, again
// and again.
//
//   - health.go: runs checks
//   - command.go: the user's own command
//   - preflight.go: the checks that gorun has itself
package health

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Timeout is how long one check may take.
const Timeout = 60 * time.Second

// A Check finds out one thing about this node.
type Check struct {
	Name string
	Run  func(context.Context) error // ends soon after the context, or is left behind
}

// An Error says which check has failed.
type Error struct {
	Check string
	Err   error
}

// Error is one line, if that of Err is.
func (e *Error) Error() string { return "health check " + e.Check + ": " + e.Err.Error() }

// Unwrap returns what the check has found.
func (e *Error) Unwrap() error { return e.Err }

// Run runs checks, one after the other, each for Timeout at most. It returns the *Error of the first one that fails, or the error of ctx.
// It does not wait for a check that does not end: a file system may not answer.
func Run(ctx context.Context, checks []Check) error {
	for _, c := range checks {
		if err := c.run(ctx, Timeout); ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil {
			return &Error{c.Name, err}
		}
	}
	return nil
}

func (c Check) run(ctx context.Context, timeout time.Duration) error {
	late := fmt.Errorf("it takes more than %v", timeout)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, late)
	defer cancel()
	var err error
	done := make(chan struct{})
	go func() { err = c.Run(ctx); close(done) }()
	select {
	case <-done:
		if errors.Is(err, context.DeadlineExceeded) {
			return context.Cause(ctx)
		}
		return err
	case <-ctx.Done():
	}
	select { // a command takes a moment to be killed
	case <-done:
	case <-time.After(time.Second):
	}
	return context.Cause(ctx)
}
