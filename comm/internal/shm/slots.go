package shm

import "github.com/gorun/gorun/comm/internal/shm/segment"

// Every rank has a staging buffer, from which others read. The rank fills it from the beginning to the end, and then again. It puts data
// there in chunks, each into a slot.
//
// The staging buffer is longer than the private caches of a processor. So what a rank overwrites has left the caches of its readers,
// and is in the cache that all share. To write a line of which another cache still has a copy takes up to five times as long, because
// that copy must be invalidated first.

// stagingSize is the bytes of a staging buffer in a team of n.
func stagingSize(n int) int {
	size := mostStaging
	for size > leastStaging && n*size > allStaging {
		size /= 2
	}
	return size
}

// slotSize is the most bytes of a slot in a team of n. Two ranks are faster with short slots: one writes while the other reads. More
// ranks may share processors, and are faster with long slots: they switch less often.
func slotSize(n int) int { return min(n*slotForEach, largestSlot, stagingSize(n)/4) }

// slots are the staging buffers of all ranks. The position of a slot, in bytes since the first one ever, is the same on all ranks.
type slots struct {
	mem         []byte
	stagingSize int
	populated   int // bytes of this rank's staging buffer that have memory behind them

	first  uint64 // position of the method's first slot, or of the next method's
	size   uint64 // of each
	chunks uint64 // how many have been through the slots

	inUse          [mostSlotsInUse]slotInUse // a ring of the slots that others may still read
	oldest, newest uint64                    // the first of these, and the one after the last
}

// A slotInUse is a slot that others read.
type slotInUse struct {
	at    uint64
	reuse reuse
}

// newSlots are the slots in mem, which has the staging buffers of n ranks.
func newSlots(mem []byte, n int) slots { return slots{mem: mem, stagingSize: stagingSize(n)} }

// layOut makes the slots of the method under way size bytes each. If the first one would cross the end of the staging buffer, it is at
// the beginning.
func (s *slots) layOut(size int) {
	s.size = uint64(max(size+lineSize-1, lineSize) / lineSize * lineSize)
	if rest := s.untilEnd(); rest < s.size {
		s.first += rest
	}
}

// untilEnd is the bytes of the staging buffer from the method's first slot to the end.
func (s *slots) untilEnd() uint64 { return uint64(s.stagingSize) - s.first%uint64(s.stagingSize) }

// at is the position of slot i of the method.
func (s *slots) at(i int) uint64 {
	n, rest := uint64(i), s.untilEnd()
	before := rest / s.size
	if n < before {
		return s.first + n*s.size
	}
	n -= before
	aLap := uint64(s.stagingSize) / s.size
	return s.first + rest + n/aLap*uint64(s.stagingSize) + n%aLap*s.size
}

// advance ends a method that has had so many chunks.
func (s *slots) advance(chunks int) {
	s.chunks += uint64(chunks)
	s.first = s.at(chunks-1) + s.size
}

// skipTo moves the next method's first slot to where position at is in the staging buffer.
func (s *slots) skipTo(at uint64) { s.first += (at - s.first) % uint64(s.stagingSize) }

// slotOf is r's slot for chunk i of the method.
func (s *slots) slotOf(r, i int) []byte {
	from := r*s.stagingSize + int(s.at(i)%uint64(s.stagingSize))
	to := from + int(s.size)
	return s.mem[from:to:to]
}

// reserveSlot waits until this rank may write its slot for chunk i of the method. The slot can be reused when reader has done step.
func (t *Team) reserveSlot(i, step, reader int) ([]byte, error) {
	if err := t.boundSkew(); err != nil {
		return nil, err
	}
	at := t.at(i)
	if err := t.reclaim(at + t.size); err != nil {
		return nil, err
	}
	t.slots.inUse[t.slots.newest%mostSlotsInUse] = slotInUse{at: at, reuse: reuse{reader: reader, time: t.time(step)}}
	t.slots.newest++
	slot := t.slotOf(t.me, i)
	if end := int(at%uint64(t.stagingSize)) + len(slot); end > t.populated {
		to := min((end+populateStep-1)/populateStep*populateStep, t.stagingSize)
		if err := segment.Populate(t.mem[t.me*t.stagingSize:][t.populated:to]); err != nil {
			return nil, err
		}
		t.populated = to
	}
	return slot, nil
}

// reclaim waits until nobody reads this rank's staging buffer up to end, and there is room for one more slot in use.
func (t *Team) reclaim(end uint64) error {
	for t.slots.oldest < t.slots.newest {
		oldest := &t.slots.inUse[t.slots.oldest%mostSlotsInUse]
		if oldest.at+uint64(t.stagingSize) >= end && t.slots.newest-t.slots.oldest < mostSlotsInUse {
			break
		}
		if err := t.awaitReaders(&oldest.reuse); err != nil {
			return err
		}
		t.slots.oldest++
	}
	return nil
}
