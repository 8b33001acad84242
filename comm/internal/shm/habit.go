package shm

import (
	"math/bits"

	"github.com/gorun/gorun/comm/internal/cpu"
)

// What a rank puts into a slot is written where others have read before. Through the caches every line must be taken from
// them first, which takes between as long and ten times as long as reading it does; past the caches it need not, but readers
// then find it farther away. Which is better depends on where the machine has put the processors: nobody tells, and on a
// virtual machine it changes while a program runs. So a rank tries both, for every kind and size of operation, and keeps to
// what has served it better. It need not ask others, as these read what there is.

const (
	leastPast  = 4 << 10 // bytes of the shortest chunk that may go past the caches
	trialEvery = 256     // operations: for two of them a rank leaves its habit
	fading     = 1.02    // how fast a good time is forgotten
)

// A habit is which way has served a rank better in operations of one kind: through the caches, or past them.
type habit struct {
	through, past float64 // ticks for a byte, lately at best; 0: not known
	uses          int
	lastPast      bool
}

// next says whether the next operation is to go past the caches.
func (h *habit) next() bool {
	usual, trial := h.past < h.through, h.uses%trialEvery < 2
	h.uses++
	return usual != trial
}

// learn says how long an operation that went one way has taken. The first after a change says little: it finds what the
// other way has left.
func (h *habit) learn(past bool, took float64) {
	best := &h.through
	if past {
		best = &h.past
	}
	if again := past == h.lastPast; again {
		if *best *= fading; *best == 0 || took < *best {
			*best = took
		}
	}
	h.lastPast = past
}

// habits are a rank's.
type habits struct {
	all   map[kind]*habit
	habit *habit    // of the operation under way; nil: it has not written to a slot yet
	past  bool      // whether it goes past the caches
	begun cpu.Stamp // when it wrote first, or first after a rest; 0: it rests
	spent cpu.Stamp // on it, before
}

// kind is what operations have in common that have one habit: the call, but for its length, and about how long that is.
type kind struct {
	what uint64
	long int
}

// decide is called before the operation writes size bytes to a slot.
func (t *Team) decide(size int) {
	if t.habit == nil && (size < leastPast || !cpu.CopiesPast) {
		return
	}
	if t.habit == nil {
		call := t.Call()
		k := kind{call.What, bits.Len64(call.Count)}
		if t.habit = t.all[k]; t.habit == nil {
			t.habit = new(habit)
			t.all[k] = t.habit
		}
		t.past = t.habit.next()
	}
	if t.begun == 0 {
		t.begun = cpu.Now()
	}
}

// rest says that time is not the operation's until it writes to a slot again.
func (t *Team) rest() {
	if t.begun != 0 {
		t.spent, t.begun = t.spent+cpu.Now()-t.begun, 0
	}
}

// End ends the operation, which has succeeded.
func (t *Team) End() {
	if t.habit == nil {
		return
	}
	t.rest()
	t.habit.learn(t.past, float64(t.spent)/float64(t.Sent+t.Received+1))
	t.habit, t.past, t.spent = nil, false, 0
}

// fill copies src to dst, part of a slot.
func (t *Team) fill(dst, src []byte) {
	if t.past {
		cpu.CopyPast(dst, src)
	} else {
		copy(dst, src)
	}
}
