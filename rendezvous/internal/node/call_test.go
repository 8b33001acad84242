package node

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// TestCallsHaveALimit: a call to a machine that does not answer ends in time, whether it confirms what a worker has found or is made
// on the way into a round.
func TestCallsHaveALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Config{dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, dialError(ctx.Err())
		}}
		begun := time.Now()
		if err := c.call(t.Context(), "n1:1", dialTimeout); !isUnreachable(err) || time.Since(begun) != dialTimeout {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		begun = time.Now()
		if c.masterAnswers(t.Context(), "n1:1") || time.Since(begun) != masterTimeout {
			t.Errorf("after %v", time.Since(begun))
		}
	})
}
