package shm

import "github.com/gorun/gorun/comm/internal/cpu"

// What a rank writes for others, into a slot or where their buffers lie, goes through the caches, or past them. Readers find
// what has gone past them farther away. But where processors have no cache in common, to write through them takes ten times as
// long as past them: nobody tells, and on a virtual machine it changes while a program runs. So a rank tries both now and then,
// and keeps to what is better. It need not ask others, as these read what there is.

const (
	leastPast  = 4 << 10   // bytes of the shortest copy that may go past the caches
	trialEvery = 32 << 20  // bytes between trials
	trialSize  = 128 << 10 // bytes of a trial, each way
	farther    = 4         // how much longer to read from a slot what has gone past takes, in times that it takes to write that
)

// A habit is which way a rank goes.
type habit struct {
	farther float64
	past    bool
	since   int // bytes since the last trial
	trial   struct{ usual, other trial }
	least   float64 // what it has ever cost to go past the caches; 0: not known
}

// A trial is how long it took to write so many bytes.
type trial struct {
	bytes int
	took  cpu.Stamp
}

func (t trial) cost() float64 { return float64(t.took) / float64(max(t.bytes, 1)) }

// newHabit is one of which the first trial is when so many bytes have been written.
func newHabit(first int, farther float64) habit {
	return habit{farther: farther, since: trialEvery - first}
}

// fill copies src to dst.
func (h *habit) fill(dst, src []byte) {
	if len(src) < leastPast || !cpu.CopiesPast {
		cpu.Copy(dst, src)
		return
	}
	past, measured := h.past, (*trial)(nil)
	switch {
	case h.since >= trialEvery+trialSize:
		past, measured = !past, &h.trial.other
	case h.since >= trialEvery:
		measured = &h.trial.usual
	}
	begun := cpu.Now()
	if past {
		cpu.CopyPast(dst, src)
	} else {
		cpu.Copy(dst, src)
	}
	if measured != nil {
		measured.took += cpu.Now() - begun
		measured.bytes += len(src)
	}
	if h.since += len(src); h.since >= trialEvery+2*trialSize {
		h.decide()
	}
}

// decide ends a trial.
func (h *habit) decide() {
	through, past := h.trial.usual.cost(), h.trial.other.cost()
	if h.past {
		through, past = past, through
	}
	if h.least == 0 || past < h.least {
		h.least = past
	}
	*h = habit{farther: h.farther, past: through-past > h.farther*h.least, least: h.least}
}
