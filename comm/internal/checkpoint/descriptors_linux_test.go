package checkpoint

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestDescriptors: the memory of many parts leaves descriptors to the program.
func TestDescriptors(t *testing.T) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	low := limit
	low.Cur = 100
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &limit) })
	mappable := 0
	for range 200 {
		m, err := newMemory(100, true)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(m.free)
		if m.segment != nil {
			mappable++
		}
	}
	if mappable == 0 || mappable > 50 {
		t.Errorf("%d of 200 memories have a descriptor, with a limit of 100", mappable)
	}
}
