// Package health checks whether a node is fit to run workers, before it joins a round. A node that is not would only fail the job, again
// and again.
package health

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/launcher"
)

const (
	// timeout is how long the command may take.
	timeout = 60 * time.Second
	// maxOutput is how many bytes of each of its two streams the command may show. It is no program whose output the user wants.
	maxOutput = 16 << 10
)

// An Error says that this node is not fit.
type Error struct {
	Command string
	Err     error
}

// Error is one line.
func (e *Error) Error() string { return fmt.Sprintf("health check %.60q: %v", e.Command, e.Err) }

// Unwrap returns what the command has said.
func (e *Error) Unwrap() error { return e.Err }

// Check runs a command of the shell, which must exit with 0 within a minute. The error is an *Error, or that of ctx. spec says where the
// command's output goes; the command runs as the only worker of a gang, so that nothing of it is left behind.
func Check(ctx context.Context, command string, spec launcher.Spec, environ []string) error {
	limited, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("it takes more than %v", timeout))
	defer cancel()
	spec.Argv = []string{"/bin/sh", "-c", command}
	spec.Workers = []launcher.WorkerSpec{{Env: environ, Prefix: "[health check] ", Show: maxOutput}}
	err := run(limited, spec)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return &Error{command, err}
	}
	return nil
}

// run runs the only worker of spec until it or ctx ends. Without error, it has exited with 0.
func run(ctx context.Context, spec launcher.Spec) error {
	gang, err := launcher.Start(ctx, spec)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { gang.Kill() })
	defer stop()
	var ended death.Death
	for x := range gang.Exits() {
		ended = x
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !ended.Failed():
		return nil
	case len(ended.Stderr) > 0:
		return fmt.Errorf("%s: %s", ended, strings.TrimSpace(ended.Stderr[len(ended.Stderr)-1]))
	default:
		return fmt.Errorf("%s", ended)
	}
}
