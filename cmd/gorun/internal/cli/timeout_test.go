package cli

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/cmd/gorun/internal/launch/frame"
)

// TestOutcomeOfTimeout: the time is over for a launched node if it was stopped because of that, and not if a worker had failed, or somebody
// had stopped it.
func TestOutcomeOfTimeout(t *testing.T) {
	over := &timeoutError{time.Second}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(over)
	o := &options{timeout: time.Second}
	for _, c := range []struct {
		err  error
		want frame.Outcome
	}{
		{nil, frame.Outcome{Code: 124, Cause: frame.Timeout, Signal: 15}},
		{over, frame.Outcome{Code: 124, Cause: frame.Timeout, Signal: 15}},
		{&agent.InterruptError{Signal: syscall.SIGTERM, Killed: 2}, frame.Outcome{Code: 124, Cause: frame.Timeout, Signal: 15, Killed: 2}},
		{&agent.InterruptError{Signal: syscall.SIGTERM, Cause: over}, frame.Outcome{Code: 124, Cause: frame.Timeout, Signal: 15}},
		{&agent.InterruptError{Signal: syscall.SIGTERM, By: agent.Command{Kind: agent.CommandStop}}, frame.Outcome{Code: 143, Cause: frame.Stopped, Signal: 15, ByStop: true}},
		{&agent.InterruptError{Signal: syscall.SIGTERM, By: agent.Command{Kind: agent.CommandKill}}, frame.Outcome{Code: 143, Cause: frame.Stopped, Signal: 15, ByStop: true}},
		{&agent.WorkerError{Code: 7}, frame.Outcome{Code: 7, Cause: frame.Worker}},
		{errors.New("no space"), frame.Outcome{Code: 1, Cause: frame.Other}},
	} {
		got := nodeOutcome(o.orTimeout(ctx, c.err))
		if says := strings.Contains(got.Text, "the time of the job was over after 1s (--timeout): stopped by signal 15 (SIGTERM)"); says != (c.want.Cause == frame.Timeout) {
			t.Errorf("%v: it says %s", c.err, got.Text)
		}
		got.Text = ""
		if got != c.want {
			t.Errorf("%v: %+v, want %+v", c.err, got, c.want)
		}
	}
}
