package agent

import (
	"slices"
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	var b backoff
	var got []time.Duration
	next := func(ran time.Duration, restart bool) {
		b = b.after(ran, restart)
		got = append(got, b.delay(time.Second)/time.Millisecond)
	}
	for range 6 {
		next(time.Second, true)
	}
	next(time.Second, false) // a node has joined: the failures before are not forgotten
	next(time.Minute, true)  // good work is
	next(time.Second, true)
	next(time.Minute, false)
	next(time.Second, true)
	if want := []time.Duration{0, 100, 200, 400, 800, 1000, 1000, 0, 100, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("waited %v ms, want %v", got, want)
	}
	if d := backoff(1 << 40).delay(10 * time.Second); d != 10*time.Second {
		t.Errorf("waited %v, want the longest", d)
	}
	if d := backoff(100).delay(0); d != 0 {
		t.Errorf("waited %v, want no backoff", d)
	}
}
