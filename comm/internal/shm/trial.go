package shm

import (
	"slices"

	"github.com/gorun/gorun/comm/internal/cpu"
)

// A trial finds out whether CMA or slots make the program faster. It compares the times from one operation to the next, because CMA also
// costs something between operations: a rank takes longer to write a buffer again that others have read.
type trial struct {
	ops       int       // how many there have been
	last      cpu.Stamp // when the last one began
	times     [2 * trialRounds][]cpu.Stamp
	cmaFaster bool
}

// A trial has rounds of two turns, first for slots and then for CMA. In a turn, the first operation does not count. The rounds have turns of different
// lengths: if a program repeats so many operations, some of which take longer, it cannot be in step with both.
const (
	trialRounds = 2
	trialBegin  = 64   // operations before a trial; the kernel gives memory to what is new, which takes time
	trialEvery  = 4096 // operations from one trial to the next
)

// trialTurns are the operations of each turn of a round.
var trialTurns = [trialRounds]int{9, 14}

// A turn says what an operation uses.
type turn int

const (
	noTurn    turn = iota // what is faster, as far as is known
	slotsTurn             // slots, to measure them
	cmaTurn               // CMA, to measure it
)

// next begins the next operation.
func (t *trial) next(now cpu.Stamp) turn {
	before, counts := trialTurn(t.ops - 1)
	if before >= 0 && counts {
		t.times[before] = append(t.times[before], now-t.last)
	}
	at, _ := trialTurn(t.ops)
	if before >= 0 && at < 0 {
		t.cmaFaster = t.isCMAFaster()
		for i := range t.times {
			t.times[i] = t.times[i][:0]
		}
	}
	t.ops++
	t.last = now
	switch {
	case at < 0:
		return noTurn
	case at%2 == 0:
		return slotsTurn
	}
	return cmaTurn
}

// trialTurn returns the turn of operation op of a trial, or -1, and whether its time counts.
func trialTurn(op int) (turn int, counts bool) {
	at := op%trialEvery - trialBegin
	for round, ops := range trialTurns {
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
func (t *trial) isCMAFaster() bool {
	for round := range trialRounds {
		if slots, cma := median(t.times[2*round]), median(t.times[2*round+1]); cma >= slots-slots/16 {
			return false
		}
	}
	return true
}

func median(times []cpu.Stamp) cpu.Stamp {
	slices.Sort(times)
	return times[len(times)/2]
}
