package shm

import (
	"testing"

	"github.com/gorun/gorun/comm/internal/cpu"
)

// run carries out operations that take what cost says, with CMA or with slots, and returns how many used CMA.
func (c *comparison) run(now *cpu.Stamp, ops int, cost func(op int, cma bool) cpu.Stamp) (withCMA int) {
	for op := range ops {
		turn := c.next(*now)
		cma := turn == cmaTurn || turn == noTurn && c.cmaFaster
		if cma {
			withCMA++
		}
		*now += cost(op, cma)
	}
	return withCMA
}

// opsCompared are the operations of a comparison that use CMA, and as many do not.
var opsCompared = turnLengths[0] + turnLengths[1]

func TestComparisonFindsTheFasterWay(t *testing.T) {
	for _, c := range []struct {
		name       string
		slots, cma cpu.Stamp
		faster     bool
	}{
		{"half the time", 1000, 500, true}, {"a tenth less", 1000, 900, true}, {"hardly less", 1000, 950, false},
		{"the same", 1000, 1000, false}, {"twice the time", 1000, 2000, false},
	} {
		var compared comparison
		var now cpu.Stamp
		// Every third operation is interrupted for long, and the first ones take longer with slots.
		withCMA := compared.run(&now, 3*comparedEvery, func(op int, cma bool) cpu.Stamp {
			took := c.slots
			if cma {
				took = c.cma
			}
			if op%3 == 0 {
				took += 1_000_000
			}
			if op < comparedFrom && !cma {
				took *= 10
			}
			return took
		})
		want := 3 * opsCompared
		if c.faster {
			want = 3*comparedEvery - comparedFrom - 3*opsCompared
		}
		if compared.cmaFaster != c.faster || withCMA != want {
			t.Errorf("%s: CMA is faster: %t, %d operations used it; want %t, %d", c.name, compared.cmaFaster, withCMA, c.faster, want)
		}
	}
}

// CMA has to be faster in both rounds.
func TestComparisonNeedsBothRounds(t *testing.T) {
	for fast := range comparedRounds {
		var compared comparison
		var now cpu.Stamp
		compared.run(&now, comparedEvery, func(op int, cma bool) cpu.Stamp {
			if turn, _ := turnOf(op); cma && turn/2 == fast {
				return 500
			}
			return 1000
		})
		if compared.cmaFaster {
			t.Errorf("CMA was faster only in round %d, and is preferred", fast)
		}
	}
}

// A program changes what it does, and the next comparison finds that.
func TestComparisonsFollowTheProgram(t *testing.T) {
	var compared comparison
	var now cpu.Stamp
	for _, faster := range []bool{false, true, true, false, true} {
		compared.run(&now, comparedEvery, func(_ int, cma bool) cpu.Stamp {
			if cma == faster {
				return 700
			}
			return 1000
		})
		if compared.cmaFaster != faster {
			t.Errorf("CMA is preferred: %t, want %t", compared.cmaFaster, faster)
		}
	}
}

// Ranks take the same turns, whatever time it is there. Each way has as many.
func TestTurnsOfAComparison(t *testing.T) {
	var one, other comparison
	turns := map[turn]int{}
	for op := range comparedEvery {
		turn := one.next(cpu.Stamp(op))
		if again := other.next(cpu.Stamp(1000 - 7*op*op)); again != turn {
			t.Fatalf("operation %d has turn %d on one rank, and %d on another", op, turn, again)
		}
		turns[turn]++
		if isCompared := op >= comparedFrom && op < comparedFrom+2*opsCompared; isCompared != (turn != noTurn) {
			t.Fatalf("operation %d has turn %d", op, turn)
		}
	}
	if turns[slotsTurn] != opsCompared || turns[cmaTurn] != opsCompared {
		t.Errorf("turns: %v", turns)
	}
}
