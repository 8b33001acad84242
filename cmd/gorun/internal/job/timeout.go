package job

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/gorun/gorun/agent"
)

// A TimeoutError says that the time of --timeout is over. It is the cause of the end of the job's context. So it is also the cause of the error
// with which the agent then ends, and which the other nodes learn.
type TimeoutError struct{ Limit time.Duration }

// Error says which flag has set the time.
func (e *TimeoutError) Error() string {
	return fmt.Sprintf("the time of the job was over after %v (--timeout)", e.Limit)
}

// withTimeout returns a context that ends after --timeout. For the agent, its end is like a SIGTERM. If a signal that ends the job comes
// before that, the context does not end.
func withTimeout(ctx context.Context, limit time.Duration, stop []os.Signal, logger *slog.Logger) (context.Context, func()) {
	if limit == 0 {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	signals := Notify(stop)
	go func() {
		defer signal.Stop(signals)
		select {
		case <-signals:
		case <-ctx.Done():
		case <-time.After(limit):
			logger.Warn(fmt.Sprintf("the job has run for %v (--timeout): gorun stops it", limit))
			cancel(&TimeoutError{limit})
		}
	}()
	return ctx, func() { cancel(nil) }
}

// orTimeout returns the error with which the job ends. err is that of the agent, or of a build. If the time was over, and no worker had failed
// before, it is an error with the TimeoutError.
func orTimeout(ctx context.Context, err error) error {
	over, ok := errors.AsType[*TimeoutError](context.Cause(ctx))
	if !ok {
		return err
	}
	stopped, interrupted := errors.AsType[*agent.InterruptError](err)
	switch {
	case interrupted && stopped.By.Kind == "": // a signal that came at the same time may have been faster
		return &agent.InterruptError{Signal: stopped.Signal, Cause: over, Killed: stopped.Killed}
	case err == nil || errors.Is(err, over): // a build returns it as it is
		return &agent.InterruptError{Signal: syscall.SIGTERM, Cause: over}
	}
	return err
}
