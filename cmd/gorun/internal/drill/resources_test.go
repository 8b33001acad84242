package drill

import (
	"os"
	"testing"
)

func TestResources(t *testing.T) {
	before, err := readResources(os.Getpid())
	if err != nil || before.Descriptors < 3 || before.Threads < 1 || before.Memory < 1000 {
		t.Fatalf("%+v, %v", before, err)
	}
	for range moreDescriptors + 10 {
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
	for want, more := range map[string]Resources{
		"":                              {Descriptors: 10 + moreDescriptors, Threads: 5, Memory: 1000 + moreMemory, Goroutines: 7},
		"30 threads, where it had 5":    {Descriptors: 10, Threads: 30, Memory: 1000, Goroutines: 7},
		"72 goroutines, where it had 7": {Descriptors: 10, Threads: 5, Memory: 1000, Goroutines: 72},
		"100000 KiB of memory, where it had 1000": {Descriptors: 10, Threads: 5, Memory: 100_000, Goroutines: 7},
	} {
		if got := more.exceeds(Resources{Descriptors: 10, Threads: 5, Memory: 1000, Goroutines: 7}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
