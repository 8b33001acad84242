package cli

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/cmd/gorun/internal/job"
	"github.com/gorun/gorun/cmd/gorun/internal/launch/frame"
)

// TestNodeOutcome: how a launched node tells its launcher that it has ended.
func TestNodeOutcome(t *testing.T) {
	over := &job.TimeoutError{Limit: 1e9}
	for _, c := range []struct {
		err  error
		want frame.Outcome
	}{
		{&agent.InterruptError{Signal: syscall.SIGTERM, Cause: over, Killed: 2}, frame.Outcome{Code: 124, Cause: frame.Timeout, Signal: 15, Killed: 2}},
		{&agent.InterruptError{Signal: syscall.SIGTERM, By: agent.Command{Kind: agent.CommandStop}}, frame.Outcome{Code: 143, Cause: frame.Stopped, Signal: 15, ByStop: true}},
		{&agent.InterruptError{Signal: syscall.SIGTERM, By: agent.Command{Kind: agent.CommandKill}}, frame.Outcome{Code: 143, Cause: frame.Stopped, Signal: 15, ByStop: true}},
		{&agent.WorkerError{Code: 7}, frame.Outcome{Code: 7, Cause: frame.Worker}},
		{errors.New("no space"), frame.Outcome{Code: 1, Cause: frame.Other}},
	} {
		got := nodeOutcome(c.err)
		if says := strings.Contains(got.Text, "the time of the job was over after 1s (--timeout): stopped by signal 15 (SIGTERM)"); says != (c.want.Cause == frame.Timeout) {
			t.Errorf("%v: it says %s", c.err, got.Text)
		}
		got.Text = ""
		if got != c.want {
			t.Errorf("%v: %+v, want %+v", c.err, got, c.want)
		}
	}
}
