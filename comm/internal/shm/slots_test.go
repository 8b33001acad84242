package shm

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/gorun/gorun/comm/internal/cpu"
)

// Slots follow one another, and none goes beyond the end of the stretch.
func TestSlotsLieOneAfterTheOther(t *testing.T) {
	for _, n := range []int{2, 3, 16, 1000} {
		s := newSlots(nil, n)
		stretch, end := uint64(s.stagingSize), uint64(0)
		rng := rand.New(rand.NewPCG(1, uint64(n)))
		for range 1000 {
			s.layOut(rng.IntN(slotSize(n) + 1))
			chunks := 1 + rng.IntN(70)
			for i := range chunks {
				at := s.at(i)
				if skipped := at - end; at < end || skipped > 0 && (at%stretch != 0 || skipped >= s.size) {
					t.Fatalf("a slot of %d bytes at byte %d, after one that ends at %d", s.size, at, end)
				}
				if end = at + s.size; at/stretch != (end-1)/stretch {
					t.Fatalf("a slot of %d bytes at byte %d goes beyond the end of a stretch of %d", s.size, at, stretch)
				}
			}
			s.advance(chunks)
		}
	}
}

// A rank goes past the caches when it costs more than readers gain to write through them, and returns when it does not any more.
func TestHabitKeepsToWhatIsBetter(t *testing.T) {
	h := newCopyPolicy(0)
	for _, c := range []struct {
		through, past float64
		goesPast      bool
	}{
		{2, 1, false}, {16, 1, true}, {20, 10, true}, {2, 1, false}, {7, 4, false},
	} {
		h.samples.cached, h.samples.nonTemporal = sample{100, c.through}, sample{100, c.past}
		h.decide()
		if h.nonTemporal != c.goesPast || h.sinceSampled != 0 {
			t.Errorf("%g through the caches and %g past them: goes past them: %v", c.through, c.past, h.nonTemporal)
		}
	}
}

// What interrupts a rank once does not tell anything of a way.
func TestTrialIsOfItsBestPiece(t *testing.T) {
	var way sample
	for _, took := range []cpu.Stamp{5000, 300, 200, 9000} {
		way.add(100, took)
	}
	if want := (sample{400, 2}); way != want {
		t.Errorf("got %v, want %v", way, want)
	}
}

// Trials are as short as they are rare, and change nothing of what is copied.
func TestHabitTries(t *testing.T) {
	h := newCopyPolicy(leastNonTemporal)
	src, dst := bytes.Repeat([]byte{1, 2, 3, 4, 5, 6, 7, 8}, sampleSize/32), make([]byte, sampleSize/4)
	for range 9 {
		clear(dst)
		h.write(dst, src)
		if !bytes.Equal(dst, src) {
			t.Fatal("the copy differs")
		}
	}
	if h.cheapest == 0 || h.sinceSampled >= sampleEvery {
		t.Errorf("after two trials of %d bytes, %d bytes since the last one", sampleSize, h.sinceSampled)
	}
}
