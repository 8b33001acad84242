package job

import (
	"context"
	"errors"
	"reflect"
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/agent"
)

// TestEndByTimeout: a job ends because its time is over if nothing else has ended it.
func TestEndByTimeout(t *testing.T) {
	over := &TimeoutError{time.Second}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(over)
	byTime := &agent.InterruptError{Signal: syscall.SIGTERM, Cause: over}
	byStop := &agent.InterruptError{Signal: syscall.SIGTERM, By: agent.Command{Kind: agent.CommandStop}}
	other := errors.New("no space")
	for _, c := range []struct {
		err  error
		want any
	}{
		{nil, byTime},
		{over, byTime},
		{byTime, byTime},
		{&agent.InterruptError{Signal: syscall.SIGTERM, Killed: 2}, &agent.InterruptError{Signal: syscall.SIGTERM, Killed: 2, Cause: over}},
		{byStop, byStop},
		{other, other},
	} {
		if got := orTimeout(ctx, c.err); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v: %v, want %v", c.err, got, c.want)
		}
		if got := orTimeout(t.Context(), c.err); !errors.Is(got, c.err) {
			t.Errorf("without a timeout, %v: %v", c.err, got)
		}
	}
}
