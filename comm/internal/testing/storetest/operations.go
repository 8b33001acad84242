package storetest

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/gorun/gorun/comm/store"
)

func getWaits(t *testing.T, s *suite) {
	a, b := s.handle(), s.handle()
	for i, value := range []string{"first", ""} {
		key := fmt.Sprint("key", i)
		got := start(func() ([]byte, error) { return a.Get(s.ctx, key) })
		letWait(t, b)
		s.set(t, b, "another "+key, "not this one")
		s.set(t, b, key, value)
		if r := <-got; r.err != nil || string(r.value) != value {
			t.Errorf("the waiting Get = %q, %v; want %q", r.value, r.err, value)
		}
	}
	for name, write := range map[string]func(key string) error{
		"Add":            func(key string) error { _, err := b.Add(s.ctx, key, 7); return err },
		"CompareAndSwap": func(key string) error { _, err := b.CompareAndSwap(s.ctx, key, nil, []byte("7")); return err },
	} {
		got := start(func() ([]byte, error) { return a.Get(s.ctx, name) })
		letWait(t, b)
		if err := write(name); err != nil {
			t.Fatal(err)
		}
		if r := <-got; r.err != nil || string(r.value) != "7" {
			t.Errorf("the Get that waits for %s = %q, %v", name, r.value, r.err)
		}
	}
}

func setWakesAll(t *testing.T, s *suite) {
	const handles, each = 4, 8
	var waits []<-chan result
	for range handles {
		h := s.handle()
		for range each {
			waits = append(waits, start(func() ([]byte, error) { return h.Get(s.ctx, "go") }))
		}
	}
	h := s.handle()
	letWait(t, h)
	s.set(t, h, "go", "now")
	for _, w := range waits {
		if r := <-w; r.err != nil || string(r.value) != "now" {
			t.Errorf("a waiting Get = %q, %v", r.value, r.err)
		}
	}
}

func waitWaits(t *testing.T, s *suite) {
	a, b := s.handle(), s.handle()
	s.set(t, b, "k1", "")
	done := start(func() ([]byte, error) { return nil, a.Wait(s.ctx, "k0", "k1", "k2") })
	for _, key := range []string{"k2", "k0"} {
		letWait(t, b)
		select {
		case r := <-done:
			t.Fatalf("Wait returned %v before %s was set", r.err, key)
		default:
		}
		s.set(t, b, key, "")
	}
	if r := <-done; r.err != nil {
		t.Errorf("Wait: %v", r.err)
	}
}

func waitDelaysNobody(t *testing.T, s *suite) {
	a := s.handle()
	const waiting = 20
	var waits []<-chan result
	for i := range waiting {
		waits = append(waits, start(func() ([]byte, error) { return a.Get(s.ctx, fmt.Sprint("slow", i)) }))
	}
	letWait(t, a)
	s.set(t, a, "quick", "v")
	s.wantGet(t, a, "quick", "v")
	s.wantAdd(t, a, "count", 1, 1)
	for i := range waiting {
		s.set(t, a, fmt.Sprint("slow", i), fmt.Sprint(i))
	}
	for i, w := range waits {
		if r := <-w; r.err != nil || string(r.value) != fmt.Sprint(i) {
			t.Errorf("Get(slow%d) = %q, %v", i, r.value, r.err)
		}
	}
}

func add(t *testing.T, s *suite) {
	a, b := s.handle(), s.handle()
	for want := range int64(3) {
		s.wantAdd(t, a, "c", 1, want+1)
	}
	s.wantGet(t, b, "c", "3")
	s.wantAdd(t, b, "c", -5, -2)
	s.wantGet(t, a, "c", "-2")
	s.wantAdd(t, a, "new", 0, 0)
	s.wantGet(t, b, "new", "0")
	s.set(t, a, "text", "41")
	s.wantAdd(t, b, "text", 1, 42)
	s.wantAdd(t, a, "low", math.MinInt64, math.MinInt64)
	s.wantAdd(t, a, "low", math.MaxInt64, -1)
}

func addWantsNumber(t *testing.T, s *suite) {
	a := s.handle()
	for _, c := range []struct {
		value string
		n     int64
	}{
		{"", 1}, {"seven", 1}, {"1.5", 1}, {" 1", 1}, {"9223372036854775808", 1},
		{fmt.Sprint(int64(math.MaxInt64)), 1}, {fmt.Sprint(int64(math.MinInt64)), -1},
	} {
		s.set(t, a, "key", c.value)
		if got, err := a.Add(s.ctx, "key", c.n); err == nil || got != 0 {
			t.Errorf("Add(%d) to %q = %d, %v; want an error", c.n, c.value, got, err)
		}
		s.wantGet(t, a, "key", c.value)
	}
}

func addConcurrently(t *testing.T, s *suite) {
	const handles, each, times = 4, 3, 20
	var stores [handles]store.Store
	for i := range stores {
		stores[i] = s.handle()
	}
	sums := make([][]int64, handles*each)
	together(len(sums), func(i int) {
		for range times {
			sum, err := stores[i%handles].Add(s.ctx, "sum", 1)
			if err != nil {
				t.Errorf("Add: %v", err)
				return
			}
			sums[i] = append(sums[i], sum)
		}
	})
	all := slices.Sorted(slices.Values(slices.Concat(sums...)))
	for i, sum := range all {
		if sum != int64(i+1) {
			t.Fatalf("the sums, sorted, have %d at place %d", sum, i)
		}
	}
	s.wantAdd(t, stores[0], "sum", 0, handles*each*times)
}

func compareAndSwap(t *testing.T, s *suite) {
	a, b := s.handle(), s.handle()
	s.wantSwap(t, a, "key", "old", "new", "old") // missing, and something is expected
	s.wantMissing(t, b, "key")
	s.wantSwap(t, a, "key", "", "v0", "v0")
	s.wantGet(t, b, "key", "v0")
	s.wantSwap(t, b, "key", "wrong", "v1", "v0")
	s.wantSwap(t, b, "key", "", "v1", "v0")
	s.wantGet(t, a, "key", "v0")
	s.wantSwap(t, b, "key", "v0", "v1", "v1")
	s.wantGet(t, a, "key", "v1")
	s.wantSwap(t, a, "key", "v1", "", "")
	s.wantGet(t, b, "key", "")
	s.wantSwap(t, b, "key", "", "v2", "v2") // empty is not missing, and equal to empty
	s.wantGet(t, a, "key", "v2")
}

func electOne(t *testing.T, s *suite) {
	const candidates = 12
	var stores [4]store.Store
	for i := range stores {
		stores[i] = s.handle()
	}
	var leaders [candidates]string
	together(candidates, func(i int) {
		leader, err := stores[i%len(stores)].CompareAndSwap(s.ctx, "leader", nil, []byte(fmt.Sprint("candidate ", i)))
		if err != nil {
			t.Errorf("CompareAndSwap: %v", err)
		}
		leaders[i] = string(leader)
	})
	for i, leader := range leaders {
		if leader == "" || leader != leaders[0] {
			t.Errorf("candidate %d sees %q elected, candidate 0 %q", i, leader, leaders[0])
		}
	}
	s.wantGet(t, stores[1], "leader", leaders[0])
}

func remove(t *testing.T, s *suite) {
	a, b := s.handle(), s.handle()
	s.wantMissing(t, a, "key")
	s.set(t, a, "key", "v")
	if existed, err := b.Delete(s.ctx, "key"); err != nil || !existed {
		t.Errorf("Delete = %v, %v; want true", existed, err)
	}
	s.wantMissing(t, a, "key")
	got := start(func() ([]byte, error) { return a.Get(s.ctx, "key") })
	letWait(t, b)
	s.wantAdd(t, b, "key", 5, 5) // from nothing again
	if r := <-got; r.err != nil || string(r.value) != "5" {
		t.Errorf("Get of a key that was deleted = %q, %v", r.value, r.err)
	}
}
