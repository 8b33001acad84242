package shm

import (
	"slices"

	"github.com/gorun/gorun/comm/internal/cpu"
)

// A comparison finds out whether CMA or slots make the program faster. It compares the times from one operation to the next, because CMA also
// costs something between operations: a rank takes longer to write a buffer again that others have read.
type comparison struct {
	ops        int       // how many there have been
	last       cpu.Stamp // when the last one began
	times      [2 * comparedRounds]times
	prefersCMA bool // a guess before the first comparison, and then what that has found
}

// A rhythm says when operations are compared. A comparison has rounds of two turns, first for slots and then for CMA. In a turn, the first operation
// does not count. The rounds have turns of different lengths: if a program repeats so many operations, some of which take longer, it cannot
// be in step with both.
type rhythm struct {
	from  int                 // operations before the first comparison: the kernel gives memory to what is new, which takes time
	every int                 // operations from one comparison to the next
	turns [comparedRounds]int // the operations of each turn of a round, at most one more than times can have
}

const comparedRounds = 2

// rhythms are those of the classes of lengths. Programs have fewer long operations, so these are compared more often. Their first comparison comes
// late, because the guess is mostly right.
var rhythms = [sizeClasses]rhythm{
	{from: 64, every: 2048, turns: [...]int{9, 14}},
	{from: 16, every: 1024, turns: [...]int{9, 14}},
	{from: 48, every: 256, turns: [...]int{7, 10}},
	{from: 48, every: 256, turns: [...]int{7, 10}},
}

// A turn says what an operation uses.
type turn int

const (
	noTurn    turn = iota // what ranks prefer
	slotsTurn             // slots, to measure them
	cmaTurn               // CMA, to measure it
)

// next begins the next operation.
func (c *comparison) next(r *rhythm, now cpu.Stamp) turn {
	before, counts := r.turnOf(c.ops - 1)
	if before >= 0 && counts {
		c.times[before].add(now - c.last)
	}
	at, _ := r.turnOf(c.ops)
	if before >= 0 && at < 0 {
		c.prefersCMA = c.isCMAFaster()
		c.times = [2 * comparedRounds]times{}
	}
	c.ops++
	c.last = now
	switch {
	case at < 0:
		return noTurn
	case at%2 == 0:
		return slotsTurn
	}
	return cmaTurn
}

// turnOf returns the turn of operation op of a comparison, or -1, and whether its time counts.
func (r *rhythm) turnOf(op int) (turn int, counts bool) {
	at := op%r.every - r.from
	for round, ops := range r.turns {
		if at >= 0 && at < 2*ops {
			return 2*round + at/ops, at%ops > 0
		}
		at -= 2 * ops
		if at < 0 {
			break
		}
	}
	return -1, false
}

// isCMAFaster reports whether CMA was faster in all rounds, by more than chance.
func (c *comparison) isCMAFaster() bool {
	for round := range comparedRounds {
		if slots, cma := c.times[2*round].median(), c.times[2*round+1].median(); cma >= slots-slots/16 {
			return false
		}
	}
	return true
}

// times are those of the operations of a turn that count.
type times struct {
	n   int
	all [16]cpu.Stamp
}

func (t *times) add(took cpu.Stamp) {
	t.all[t.n] = took
	t.n++
}

func (t *times) median() cpu.Stamp {
	slices.Sort(t.all[:t.n])
	return t.all[t.n/2]
}
