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

// A timeoutError says that the job was stopped because the time of --timeout was over.
type timeoutError struct {
	limit  time.Duration
	killed int // workers that did not stop by themselves
}

func (e *timeoutError) Error() string {
	stopped := agent.InterruptError{Signal: syscall.SIGTERM, Killed: e.killed}
	return fmt.Sprintf("the time of the job was over after %v (--timeout): %v", e.limit, &stopped)
}

// errTimeout is the cause of a context that has ended because of --timeout.
var errTimeout = errors.New("the time of --timeout is over")

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
			cancel(errTimeout)
		}
	}()
	return ctx, func() { cancel(nil) }
}

// orTimeout returns the error with which the job ends: if the time was over, that, unless a worker failed before.
func (o *options) orTimeout(ctx context.Context, err error) error {
	if !errors.Is(context.Cause(ctx), errTimeout) {
		return err
	}
	stopped, interrupted := errors.AsType[*agent.InterruptError](err)
	switch {
	case err == nil || errors.Is(err, errTimeout): // the latter during a build
		return &timeoutError{limit: o.timeout}
	case interrupted:
		return &timeoutError{o.timeout, stopped.Killed}
	}
	return err
}
