package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/signal"
	"syscall"
	"time"

	"github.com/gorun/gorun/agent"
)

// A timeoutError says that the time of --timeout is over. It is the cause of the end of the job's context, and so of the error with which
// the agent then ends, which the other nodes learn as well.
type timeoutError struct{ limit time.Duration }

func (e *timeoutError) Error() string {
	return fmt.Sprintf("the time of the job was over after %v (--timeout)", e.limit)
}

// withTimeout returns a context that ends after --timeout, for the agent, to which this is like SIGTERM. A signal that ends the job
// comes first or not at all: then the context does not end.
func (o *options) withTimeout(ctx context.Context, logger *slog.Logger) (context.Context, func()) {
	if o.timeout == 0 {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	signals := notify(o.stopSignals)
	go func() {
		defer signal.Stop(signals)
		select {
		case <-signals:
		case <-ctx.Done():
		case <-time.After(o.timeout):
			logger.Warn(fmt.Sprintf("the job has run for %v (--timeout): gorun stops it", o.timeout))
			cancel(&timeoutError{o.timeout})
		}
	}()
	return ctx, func() { cancel(nil) }
}

// orTimeout returns the error with which the job ends: if the time was over, that, unless a worker failed before.
func (o *options) orTimeout(ctx context.Context, err error) error {
	over, ok := errors.AsType[*timeoutError](context.Cause(ctx))
	if !ok {
		return err
	}
	stopped, interrupted := errors.AsType[*agent.InterruptError](err)
	switch {
	case interrupted && stopped.By == "": // a signal that came at the same time may have been faster
		return &agent.InterruptError{Signal: stopped.Signal, Cause: over, Killed: stopped.Killed}
	case err == nil || is[*timeoutError](err): // the latter during a build
		return &agent.InterruptError{Signal: syscall.SIGTERM, Cause: over}
	}
	return err
}
