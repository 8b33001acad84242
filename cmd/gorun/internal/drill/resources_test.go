package drill

import (
	"os"
	"testing"
)

func TestResources(t *testing.T) {
	before, err := readResources(os.Getpid())
	if err != nil || before[descriptors] < 3 || before[threads] < 1 || before[memory] < 1000 {
		t.Fatalf("%+v, %v", before, err)
	}
	for range limits[descriptors].more + 10 {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	}
	now, err := readResources(os.Getpid())
	if err != nil || now.exceeds(before) == "" {
		t.Errorf("%+v is not too much more than %+v, %v", now, before, err)
	}
	for want, more := range map[string]resources{
		"": {10 + limits[descriptors].more, 5, 1000 + limits[memory].more, 7},
		"at least 30 threads, where it had at most 5":              {10, 30, 1000, 7},
		"at least 72 goroutines, where it had at most 7":           {10, 5, 1000, 72},
		"at least 100000 KiB of memory, where it had at most 1000": {10, 5, 100_000, 7},
	} {
		if got := more.exceeds(resources{10, 5, 1000, 7}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestGrows: a leak is what goes on; connections that come late, or for a while, are none.
func TestGrows(t *testing.T) {
	for name, c := range map[string]struct {
		descriptors func(fault int) int
		faults      int
		grows       bool
	}{
		"steady":           {func(int) int { return 40 }, 100, false},
		"a leak":           {func(fault int) int { return 14 + fault }, 100, true},
		"two each":         {func(fault int) int { return 14 + 2*fault }, 50, true},
		"too few to judge": {func(fault int) int { return 100 * fault }, leastSamples - 1, false},
		"young at first":   {func(fault int) int { return min(14+30*fault, 50) }, 20, false},
		"a peak at last":   {func(fault int) int { return 40 + 100*(fault/19) }, 20, false},
	} {
		u := &usage{}
		for fault := range c.faults {
			u.samples = append(u.samples, resources{descriptors: c.descriptors(fault)})
		}
		if got := u.grows(); (got != "") != c.grows {
			t.Errorf("%s: %q", name, got)
		}
	}
}
