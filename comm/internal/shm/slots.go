package shm

import "github.com/gorun/gorun/comm/internal/shm/segment"

// Every rank has a stretch of memory for others to read from, which it writes from the beginning to the end, and then again:
// what it puts there in chunks lies in slots, one after the other.
//
// The stretch is longer than the caches that a processor has to itself. So what a rank writes over has left these caches since
// others have read it there, and has come to rest in the one that all have in common, from where it is had soon. To write
// where somebody's cache still has a copy takes up to five times as long, as that one has to be told, line by line.

// stretchSize is the bytes of a stretch in a team of n.
func stretchSize(n int) int {
	size := longestStretch
	for size > shortestStretch && n*size > allStretches {
		size /= 2
	}
	return size
}

// slotSize is the most bytes of a slot in a team of n. Two ranks do better with short ones, where one writes while the other
// reads what has been written before. More may have to take turns on fewer processors, and do better if that is less often.
func slotSize(n int) int { return min(n*slotForEach, largestSlot, stretchSize(n)/4) }

// slots are the stretches of all ranks. Where a slot is, counted in bytes that have gone before it, is the same on all.
type slots struct {
	mem     []byte
	stretch int
	backed  int // bytes of this rank's stretch that have memory behind them

	first  uint64 // where the method's first slot is
	size   uint64 // of each
	chunks uint64 // how many have been through the slots

	loans          [mostLent]loan // slots that this rank has filled, in turn
	oldest, newest uint64         // of those in use: the first one, and the one after the last
}

// A loan is a slot that others read from.
type loan struct {
	at    uint64
	until vacancy
}

// newSlots are those in mem, which the stretches of n ranks share.
func newSlots(mem []byte, n int) slots { return slots{mem: mem, stretch: stretchSize(n)} }

// lay makes the slots of the method under way size bytes each. The first is at the beginning of the stretch if it would end
// beyond it otherwise.
func (s *slots) lay(size int) {
	s.size = uint64(max(size+lineSize-1, lineSize) / lineSize * lineSize)
	if left := s.left(); left < s.size {
		s.first += left
	}
}

// left is the bytes of the stretch from where the method's first slot is.
func (s *slots) left() uint64 { return uint64(s.stretch) - s.first%uint64(s.stretch) }

// at is where slot number i of the method is.
func (s *slots) at(i int) uint64 {
	n, left := uint64(i), s.left()
	before := left / s.size
	if n < before {
		return s.first + n*s.size
	}
	n -= before
	aLap := uint64(s.stretch) / s.size
	return s.first + left + n/aLap*uint64(s.stretch) + n%aLap*s.size
}

// passed says that the method has had so many chunks.
func (s *slots) passed(chunks int) {
	s.chunks += uint64(chunks)
	s.first = s.at(chunks-1) + s.size
}

// slotOf is r's slot for chunk number i of the method.
func (s *slots) slotOf(r, i int) []byte {
	from := r*s.stretch + int(s.at(i)%uint64(s.stretch))
	to := from + int(s.size)
	return s.mem[from:to:to]
}

// own is this rank's slot for chunk number i of the method, free to be written. It is free again for another one when reader has
// done step.
func (t *Team) own(i, step, reader int) ([]byte, error) {
	if err := t.stayInReach(); err != nil {
		return nil, err
	}
	at := t.at(i)
	if err := t.reclaim(at + t.size); err != nil {
		return nil, err
	}
	t.loans[t.slots.newest%mostLent] = loan{at: at, until: vacancy{reader: reader, time: t.time(step)}}
	t.slots.newest++
	slot := t.slotOf(t.me, i)
	if end := int(at%uint64(t.stretch)) + len(slot); end > t.backed {
		to := min((end+backedPiece-1)/backedPiece*backedPiece, t.stretch)
		if err := segment.Populate(t.mem[t.me*t.stretch:][t.backed:to]); err != nil {
			return nil, err
		}
		t.backed = to
	}
	return slot, nil
}

// reclaim waits until this rank's stretch is free up to end, and there is room for one more loan.
func (t *Team) reclaim(end uint64) error {
	for t.slots.oldest < t.slots.newest {
		l := &t.loans[t.slots.oldest%mostLent]
		if l.at+uint64(t.stretch) >= end && t.slots.newest-t.slots.oldest < mostLent {
			break
		}
		if err := t.await(&l.until); err != nil {
			return err
		}
		t.slots.oldest++
	}
	return nil
}
