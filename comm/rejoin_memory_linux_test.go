package comm

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/env/testing/testkit"
)

// TestMemoryOutlivesARound: the buffers of survivors stay where they are, with what is in them, and collectives use them as before. What the
// dead had is freed.
func TestMemoryOutlivesARound(t *testing.T) {
	testkit.WithoutRace(t)
	onNetworks(t, testkit.UnlessShort([]string{"shm", "tcp", "mixed"}, []string{"shm"}), func(t *testing.T, network string) {
		a := newTestAgent(t, network, 4)
		a.join()
		a.all("alloc", "500000")
		a.all("fill", "7")
		var footprints []string
		for i := range 12 {
			a.begun("run", "in place")
			time.Sleep(10 * time.Millisecond) // so that it is under way
			a.lose(3)
			for rank, r := range a.results() {
				wantDead(t, a.workers[rank], r, "AllReduce", 3)
			}
			a.next(4)
			a.workers[3].do("init")
			for _, w := range a.workers[:3] {
				w.do("rejoin")
			}
			for rank, r := range a.results() {
				if r.Error != "" {
					t.Fatalf("rank %d: %s", rank, r.Error)
				}
			}
			a.workers[3].do("alloc", "500000")
			a.workers[3].result()
			a.workers[3].do("fill", "7")
			a.workers[3].result()
			a.all("holds", "7")
			a.all("reduce")
			a.all("holds", "28")
			a.all("fill", "7")
			if i%4 == 1 { // by the group of the world before
				for _, w := range a.workers[:3] {
					w.do("free old")
					if r := w.result(); r.Error != "" {
						t.Error(r.Error)
					}
					w.do("free")
					wantError(t, w, w.result(), "no memory of Alloc begins at ", 2)
					w.do("alloc", "500000")
					w.result()
				}
				a.all("fill", "7")
			}
			a.workers[0].do("footprint")
			footprints = append(footprints, a.workers[0].result().Text)
		}
		var first, last [4]int
		for at, numbers := range map[int]*[4]int{1: &first, len(footprints) - 1: &last} {
			if _, err := fmt.Sscan(footprints[at], &numbers[0], &numbers[1], &numbers[2], &numbers[3]); err != nil {
				t.Fatal(err)
			}
		}
		if last[2] > first[2]+4 || last[1] > first[1]+5 {
			t.Errorf("goroutines, descriptors, mappings and heap: %v after the second round, %v after the last", first, last)
		}
		a.all("free")
	})
}

// TestAStoppedRankWritesNothingLater: a rank that is stopped inside a collective in memory of others, and left behind, does not write to
// that memory when it goes on.
func TestAStoppedRankWritesNothingLater(t *testing.T) {
	testkit.WithoutRace(t)
	t.Parallel()
	a := newTestAgent(t, "shm", 3)
	a.join()
	odd := a.workers[2]
	for range testkit.UnlessShort(10, 1) {
		for _, w := range a.workers {
			w.joined = true
		}
		a.all("alloc", "3000000")
		a.all("fill", "5")
		a.begun("reduce for ever")
		time.Sleep(20 * time.Millisecond) // so that it is under way
		if err := odd.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		left := a.workers[:2:2]
		a.workers = left
		a.over()
		for _, w := range left {
			if r := w.result(); r.Kind != "over" {
				t.Errorf("rank %d: %s", w.rank, r.Error)
			}
		}
		a.next(2)
		a.join()
		a.all("fill", "3")
		if err := odd.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		if r := odd.result(); r.Kind != "peer" {
			t.Errorf("the rank that was left behind: %s", r.Error)
		}
		a.all("holds", "3")
		a.all("reduce")
		a.all("holds", "6")
		a.all("free")
		odd.end()
		a.over()
		for len(a.workers) < 3 {
			a.workers = append(a.workers, nil)
		}
		a.next(3)
		a.join()
		odd = a.workers[2]
	}
}
