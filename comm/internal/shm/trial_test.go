package shm

import (
	"testing"

	"github.com/gorun/gorun/comm/internal/cpu"
)

// run carries out operations that take what cost says, with CMA or with slots, and returns how many used CMA.
func (t *trial) run(now *cpu.Stamp, ops int, cost func(op int, cma bool) cpu.Stamp) (withCMA int) {
	for op := range ops {
		turn := t.next(*now)
		cma := turn == cmaTurn || turn == noTurn && t.cmaFaster
		if cma {
			withCMA++
		}
		*now += cost(op, cma)
	}
	return withCMA
}

// opsInTrial are the operations of a trial that use CMA, and as many do not.
var opsInTrial = trialTurns[0] + trialTurns[1]

func TestTrialFindsTheFasterWay(t *testing.T) {
	for _, c := range []struct {
		name       string
		slots, cma cpu.Stamp
		faster     bool
	}{
		{"half the time", 1000, 500, true}, {"a tenth less", 1000, 900, true}, {"hardly less", 1000, 950, false},
		{"the same", 1000, 1000, false}, {"twice the time", 1000, 2000, false},
	} {
		var tr trial
		var now cpu.Stamp
		// Every third operation is interrupted for long, and the first ones take longer with slots.
		withCMA := tr.run(&now, 3*trialEvery, func(op int, cma bool) cpu.Stamp {
			took := c.slots
			if cma {
				took = c.cma
			}
			if op%3 == 0 {
				took += 1_000_000
			}
			if op < trialBegin && !cma {
				took *= 10
			}
			return took
		})
		want := 3 * opsInTrial
		if c.faster {
			want = 3*trialEvery - trialBegin - 3*opsInTrial
		}
		if tr.cmaFaster != c.faster || withCMA != want {
			t.Errorf("%s: CMA is faster: %t, %d operations used it; want %t, %d", c.name, tr.cmaFaster, withCMA, c.faster, want)
		}
	}
}

// CMA has to be faster in both rounds.
func TestTrialNeedsBothRounds(t *testing.T) {
	for fast := range trialRounds {
		var tr trial
		var now cpu.Stamp
		tr.run(&now, trialEvery, func(op int, cma bool) cpu.Stamp {
			if turn, _ := trialTurn(op); cma && turn/2 == fast {
				return 500
			}
			return 1000
		})
		if tr.cmaFaster {
			t.Errorf("CMA was faster only in round %d, and is preferred", fast)
		}
	}
}

// A program changes what it does, and the next trial finds that.
func TestTrialsFollowTheProgram(t *testing.T) {
	var tr trial
	var now cpu.Stamp
	for _, faster := range []bool{false, true, true, false, true} {
		tr.run(&now, trialEvery, func(_ int, cma bool) cpu.Stamp {
			if cma == faster {
				return 700
			}
			return 1000
		})
		if tr.cmaFaster != faster {
			t.Errorf("CMA is preferred: %t, want %t", tr.cmaFaster, faster)
		}
	}
}

// Ranks take the same turns, whatever time it is there. Each way has as many.
func TestTurnsOfATrial(t *testing.T) {
	var one, other trial
	turns := map[turn]int{}
	for op := range trialEvery {
		turn := one.next(cpu.Stamp(op))
		if again := other.next(cpu.Stamp(1000 - 7*op*op)); again != turn {
			t.Fatalf("operation %d has turn %d on one rank, and %d on another", op, turn, again)
		}
		turns[turn]++
		if inTrial := op >= trialBegin && op < trialBegin+2*opsInTrial; inTrial != (turn != noTurn) {
			t.Fatalf("operation %d has turn %d", op, turn)
		}
	}
	if turns[slotsTurn] != opsInTrial || turns[cmaTurn] != opsInTrial {
		t.Errorf("turns: %v", turns)
	}
}
