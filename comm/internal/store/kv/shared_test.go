package kv

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestSharedForgetsWaitsThatEnd(t *testing.T) {
	s := NewShared()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { _, err := s.Get(ctx, "a"); ended <- err }()
	go func() { ended <- s.Wait(ctx, "a", "b") }()
	for waiting := 0; waiting < 2; time.Sleep(100 * time.Microsecond) {
		_ = s.Do(func(state *State) error {
			waiting = len(state.waiters["a"])
			return nil
		})
	}
	cancel()
	for range 2 {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("a wait that was cancelled: %v", err)
		}
	}
	if len(s.state.waiters) != 0 {
		t.Errorf("nobody waits, but there are waiters %v", s.state.waiters)
	}
}
