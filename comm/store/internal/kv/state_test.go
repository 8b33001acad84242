package comm

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestMemStoreForgetsWaitsThatEnd(t *testing.T) {
	s := NewMemStore()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { _, err := s.Get(ctx, "a"); ended <- err }()
	go func() { ended <- s.Wait(ctx, "a", "b") }()
	eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.state.waiters["a"]) == 2
	})
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

func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(deadline) {
			t.Fatal("this did not come about within a minute")
		}
	}
}

// The state does what a plain map with the words of Store does, and wakes exactly those whose key was set.
func TestStoreStateAgainstAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		state := newStoreState()
		model := map[string]string{}
		waiting := map[string]int{}
		woken := 0
		key := rapid.SampledFrom([]string{"a", "b"})
		value := rapid.SampledFrom([]string{"", "0", "7", "-3", "x"})
		wrote := func(k, v string) int {
			model[k] = v
			n := waiting[k]
			delete(waiting, k)
			return n
		}
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				k, v := key.Draw(t, "key"), value.Draw(t, "value")
				state.set(k, []byte(v))
				woken -= wrote(k, v)
			},
			"add": func(t *rapid.T) {
				k, n := key.Draw(t, "key"), int64(rapid.IntRange(-5, 5).Draw(t, "n"))
				sum, err := state.add(k, n)
				now, ok := model[k]
				was, notNumber := strconv.ParseInt(now, 10, 64)
				if (err != nil) != (ok && notNumber != nil) || err == nil && sum != was+n {
					t.Fatalf("add(%q, %d) to %q = %d, %v", k, n, now, sum, err)
				}
				if err == nil {
					woken -= wrote(k, strconv.FormatInt(sum, 10))
				}
			},
			"swap": func(t *rapid.T) {
				k, old, new := key.Draw(t, "key"), value.Draw(t, "old"), value.Draw(t, "new")
				now, ok := model[k]
				want := now
				switch {
				case ok && now == old, !ok && old == "":
					want = new
					woken -= wrote(k, new)
				case !ok:
					want = old
				}
				if got := state.compareAndSwap(k, []byte(old), []byte(new)); string(got) != want {
					t.Fatalf("compareAndSwap(%q, %q, %q) of %q, %v = %q", k, old, new, now, ok, got)
				}
			},
			"remove": func(t *rapid.T) {
				k := key.Draw(t, "key")
				if _, ok := model[k]; state.remove(k) != ok {
					t.Fatalf("remove(%q) does not say %v", k, ok)
				}
				delete(model, k)
			},
			"await": func(t *rapid.T) {
				k := key.Draw(t, "key")
				w := state.await(k, func([]byte) { woken++ })
				if rapid.Bool().Draw(t, "forget") {
					state.forget(w)
				} else {
					waiting[k]++
				}
			},
			"": func(t *rapid.T) {
				if woken != 0 {
					t.Fatalf("%d more were woken than should have been", woken)
				}
				for k, n := range waiting {
					if len(state.waiters[k]) != n {
						t.Fatalf("%d wait for %q, want %d", len(state.waiters[k]), k, n)
					}
				}
				for k, v := range model {
					if string(state.values[k]) != v {
						t.Fatalf("%q holds %q, want %q", k, state.values[k], v)
					}
				}
			},
		})
	})
}
