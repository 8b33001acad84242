package kv

import (
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// A State does what a plain map does, and calls exactly the waiters whose key was set.
func TestStateAgainstAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		state := NewState()
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
				state.Set(k, []byte(v))
				woken -= wrote(k, v)
			},
			"add": func(t *rapid.T) {
				k, n := key.Draw(t, "key"), int64(rapid.IntRange(-5, 5).Draw(t, "n"))
				sum, err := state.Add(k, n)
				now, ok := model[k]
				was, notNumber := strconv.ParseInt(now, 10, 64)
				if (err != nil) != (ok && notNumber != nil) || err == nil && sum != was+n {
					t.Fatalf("Add(%q, %d) to %q = %d, %v", k, n, now, sum, err)
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
				if got := state.CompareAndSwap(k, []byte(old), []byte(new)); string(got) != want {
					t.Fatalf("CompareAndSwap(%q, %q, %q) of %q, %v = %q", k, old, new, now, ok, got)
				}
			},
			"delete": func(t *rapid.T) {
				k := key.Draw(t, "key")
				if _, ok := model[k]; state.Delete(k) != ok {
					t.Fatalf("Delete(%q) does not say %v", k, ok)
				}
				delete(model, k)
			},
			"await": func(t *rapid.T) {
				k := key.Draw(t, "key")
				w := state.Await(k, func([]byte) { woken++ })
				if rapid.Bool().Draw(t, "cancel") {
					state.Cancel(w)
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
