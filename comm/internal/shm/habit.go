package shm

import "github.com/gorun/gorun/comm/internal/cpu"

// What a rank writes for others, into a slot or where their buffers lie, goes through the caches, or past them. Readers find
// what has gone past them farther away. But where processors have no cache in common, to write through them takes ten times as
// long as past them: nobody tells, and on a virtual machine it changes while a program runs. So a rank tries both now and then,
// and keeps to what is better. It need not ask others, as these read what there is.

const (
	trialEvery = 32 << 20  // bytes between trials
	trialSize  = 128 << 10 // bytes of a trial, each way
	trialPiece = 16 << 10  // bytes that go one way, before as many go the other
	farther    = 4         // how much longer to read what has gone past takes, in times that it takes to write that
)

// A habit is which way a rank goes.
type habit struct {
	past   bool
	since  int // bytes since the last trial
	trials struct{ through, past trial }
	least  float64 // what it has ever cost to go past the caches; 0: not known
}

// A trial is of one way.
type trial struct {
	bytes int
	least float64 // what a byte of some piece has cost: others may have cost more, as the kernel had something to do meanwhile
}

// newHabit is one of which the first trial is when so many bytes have been written.
func newHabit(first int) habit { return habit{since: trialEvery - first} }

// fill copies src to dst.
func (h *habit) fill(dst, src []byte) {
	if len(src) < leastPast || !cpu.CopiesPast {
		cpu.Copy(dst, src)
		return
	}
	for h.since >= trialEvery && len(src) >= leastPast {
		n := min(len(src), trialPiece)
		h.try(dst[:n], src[:n])
		dst, src = dst[n:], src[n:]
	}
	fill(dst, src, h.past)
	h.since += len(src)
}

func fill(dst, src []byte, past bool) {
	if past {
		cpu.CopyPast(dst, src)
	} else {
		cpu.Copy(dst, src)
	}
}

// try copies a piece the way that has been tried less, and decides when both have been tried enough.
func (h *habit) try(dst, src []byte) {
	way := &h.trials.through
	past := h.trials.past.bytes < way.bytes
	if past {
		way = &h.trials.past
	}
	begun := cpu.Now()
	fill(dst, src, past)
	way.add(len(src), cpu.Now()-begun)
	if h.trials.past.bytes >= trialSize {
		h.decide()
	}
}

func (t *trial) add(bytes int, took cpu.Stamp) {
	if cost := float64(took) / float64(bytes); t.bytes == 0 || cost < t.least {
		t.least = cost
	}
	t.bytes += bytes
}

// decide ends a trial.
func (h *habit) decide() {
	through, past := h.trials.through.least, h.trials.past.least
	if h.least == 0 || past < h.least {
		h.least = past
	}
	*h = habit{past: through-past > farther*h.least, least: h.least}
}
