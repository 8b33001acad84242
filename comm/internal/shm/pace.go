package shm

import (
	"slices"

	"github.com/gorun/gorun/comm/internal/cpu"
)

// A pace finds out which of two ways to carry out an operation makes the program go on faster. It compares the times from one operation to the
// next, because a way may cost something outside of the operation: if others have read a buffer in place, its rank takes longer to write it
// again. The ways take turns in some operations out of many.
type pace struct {
	ops    int       // how many there have been
	last   cpu.Stamp // when the last one began
	times  [2 * trialRounds][trialTimes]cpu.Stamp
	second bool // the second way is faster
}

// A trial has rounds, in each of which the first way and then the second one have their turn. In a turn, times are measured after one
// operation that does not count.
const (
	trialRounds = 2
	trialTimes  = 8
	trialTurn   = trialTimes + 1
	trialOps    = 2 * trialRounds * trialTurn
	trialEvery  = 1024 // operations; as many as may pass until the next trial
	trialBegin  = 64   // operations before a trial; the kernel gives memory to what is new, which takes time
)

// A turn says which way an operation is carried out.
type turn int

const (
	preferred turn = iota // the way that is known to be faster
	firstWay              // to measure it
	secondWay             // to measure it
)

// next begins the next operation.
func (p *pace) next(now cpu.Stamp) turn {
	at := p.ops%trialEvery - trialBegin
	if i := (at - 1) % trialTurn; at > 0 && at <= trialOps && i > 0 {
		p.times[(at-1)/trialTurn][i-1] = now - p.last
	}
	if at == trialOps {
		p.second = p.isSecondFaster()
	}
	p.ops++
	p.last = now
	switch {
	case at < 0 || at >= trialOps:
		return preferred
	case at/trialTurn%2 == 0:
		return firstWay
	}
	return secondWay
}

// isSecondFaster reports whether the second way was faster in all rounds, by more than chance.
func (p *pace) isSecondFaster() bool {
	for round := range trialRounds {
		if first, second := median(p.times[2*round]), median(p.times[2*round+1]); second >= first-first/16 {
			return false
		}
	}
	return true
}

func median(times [trialTimes]cpu.Stamp) cpu.Stamp {
	slices.Sort(times[:])
	return times[trialTimes/2]
}
