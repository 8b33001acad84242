package node

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
)

// TestInTime: a user hears that etcd does not answer, and of other errors as they are.
func TestInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		if err := inTime(t.Context(), silent); err == nil || !strings.Contains(err.Error(), "has not answered within 5s") {
			t.Errorf("a silent etcd: %v", err)
		}
		if err := inTime(t.Context(), func(context.Context) error { return errNoJob }); !errors.Is(err, errNoJob) {
			t.Errorf("no job: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := inTime(ctx, silent); !errors.Is(err, context.Canceled) {
			t.Errorf("canceled: %v", err)
		}
	})
}
