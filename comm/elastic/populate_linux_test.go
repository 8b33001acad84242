package elastic

import (
	"errors"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

const testPages, testPageSize = 8192, 4096

// TestPopulate: memory that has been populated has its contents, and to write to it costs no page faults.
func TestPopulate(t *testing.T) {
	a, b := pages(t), pages(t)
	a[5], b[len(b)-1] = 7, 8
	populateUntil(new(atomic.Bool), [][]byte{a[1:], b[:len(b)-1]}) // not whole pages
	if n := faultsOfWriting(t, a) + faultsOfWriting(t, b); n > testPages/10 {
		t.Errorf("%d page faults of %d pages", n, 2*testPages)
	}
	if a[5] != 8 || b[len(b)-1] != 8 {
		t.Errorf("the contents are %d and %d", a[5], b[len(b)-1])
	}
}

// TestPopulateStops: a Run that ends does not wait until the memory of its State has been populated.
func TestPopulateStops(t *testing.T) {
	var stop atomic.Bool
	stop.Store(true)
	a := pages(t)
	populateUntil(&stop, [][]byte{a})
	if n := faultsOfWriting(t, a); n < testPages/2 {
		t.Errorf("%d page faults of %d pages", n, testPages)
	}
}

// pages returns memory that has not been populated.
func pages(t *testing.T) []byte {
	mem, err := unix.Mmap(-1, 0, testPages*testPageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(mem) })
	_ = unix.Madvise(mem, unix.MADV_NOHUGEPAGE) // there may be none
	if err := unix.Madvise(mem[:testPageSize], unix.MADV_POPULATE_WRITE); errors.Is(err, unix.EINVAL) {
		t.Skip("the kernel does not populate memory")
	}
	return mem
}

// faultsOfWriting adds one to a byte of each page, and returns how many page faults that has cost.
func faultsOfWriting(t *testing.T, mem []byte) int64 {
	begun := pageFaults(t)
	for i := 5; i < len(mem); i += testPageSize {
		mem[i]++
	}
	return pageFaults(t) - begun
}

func pageFaults(t *testing.T) int64 {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return usage.Minflt
}
