package shm

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/gorun/gorun/comm/internal/cpu"
)

// Slots follow one another, and none crosses the end of the staging buffer.
func TestSlotsLieOneAfterTheOther(t *testing.T) {
	for _, n := range []int{2, 3, 16, 1000} {
		s := newSlots(nil, n)
		staging, end := uint64(s.stagingSize), uint64(0)
		rng := rand.New(rand.NewPCG(1, uint64(n)))
		for range 1000 {
			s.layOut(rng.IntN(slotSize(n) + 1))
			chunks := 1 + rng.IntN(70)
			for i := range chunks {
				at := s.at(i)
				if skipped := at - end; at < end || skipped > 0 && (at%staging != 0 || skipped >= s.size) {
					t.Fatalf("a slot of %d bytes at byte %d, after one that ends at %d", s.size, at, end)
				}
				if end = at + s.size; at/staging != (end-1)/staging {
					t.Fatalf("a slot of %d bytes at byte %d crosses the end of a staging buffer of %d", s.size, at, staging)
				}
			}
			s.advance(chunks)
		}
	}
}

// A rank uses non-temporal stores where ordinary ones cost more than readers gain by them, and only as long as that is so.
func TestCopyPolicyUsesTheBetterStores(t *testing.T) {
	h := newCopyPolicy(0)
	for _, c := range []struct {
		through, past float64
		nonTemporal   bool
	}{
		{2, 1, false}, {16, 1, true}, {20, 10, true}, {2, 1, false}, {7, 4, false},
	} {
		h.samples.cached, h.samples.nonTemporal = sample{100, c.through}, sample{100, c.past}
		h.decide()
		if h.nonTemporal != c.nonTemporal || h.sinceSampled != 0 {
			t.Errorf("ordinary stores cost %g, non-temporal ones %g: non-temporal: %v", c.through, c.past, h.nonTemporal)
		}
	}
}

// One interrupt does not change a measurement.
func TestSampleIsOfItsFastestPiece(t *testing.T) {
	var way sample
	for _, took := range []cpu.Stamp{5000, 300, 200, 9000} {
		way.add(100, took)
	}
	if want := (sample{400, 2}); way != want {
		t.Errorf("got %v, want %v", way, want)
	}
}

// Measurements are short and rare, and do not change what is copied.
func TestCopyPolicyMeasures(t *testing.T) {
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
		t.Errorf("after two measurements of %d bytes, %d bytes since the last one", sampleSize, h.sinceSampled)
	}
}
