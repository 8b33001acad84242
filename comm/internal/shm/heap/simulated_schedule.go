//go:build schedule && linux

package heap

import "github.com/gorun/gorun/comm/internal/shm/segment"

// Simulated are the heaps of ranks for tests, each of one region in that memory of the tests. Every heap has attached all others,
// by their ranks' addresses.
func Simulated(mems [][]byte, addresses []string) []*Heap {
	regions, heaps := make([]*region, len(mems)), make([]*Heap, len(mems))
	for r, mem := range mems {
		regions[r] = &region{id: uint64(r + 1), mem: mem, segment: segment.Simulated(mem)}
	}
	for r := range heaps {
		h := New(nil, nil)
		h.regions = regions[r : r+1]
		h.exported.Store(&h.regions)
		for other, region := range regions {
			h.attached[remote{addresses[other], region.id}] = region.segment
		}
		heaps[r] = h
	}
	return heaps
}
