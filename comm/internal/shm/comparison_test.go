package shm

import (
	"testing"

	"github.com/gorun/gorun/comm/internal/cpu"
)

// run carries out operations that take what cost says, with CMA or with slots, and returns how many used CMA.
func (c *comparison) run(r *rhythm, now *cpu.Stamp, ops int, cost func(op int, cma bool) cpu.Stamp) (withCMA int) {
	for op := range ops {
		turn := c.next(r, *now)
		cma := turn == cmaTurn || turn == noTurn && c.prefersCMA
		if cma {
			withCMA++
		}
		*now += cost(op, cma)
	}
	return withCMA
}

// compared are the operations of a comparison that use CMA, and as many do not.
func (r *rhythm) compared() (ops int) {
	for _, n := range r.turns {
		ops += n
	}
	return ops
}

func TestComparisonFindsTheFasterWay(t *testing.T) {
	for _, c := range []struct {
		name       string
		slots, cma cpu.Stamp
		faster     bool
	}{
		{"half the time", 1000, 500, true}, {"a tenth less", 1000, 900, true}, {"hardly less", 1000, 950, false},
		{"the same", 1000, 1000, false}, {"twice the time", 1000, 2000, false},
	} {
		for class := range rhythms {
			r := &rhythms[class]
			var compared comparison
			var now cpu.Stamp
			// Every third operation is interrupted for long, and the first ones take longer with slots.
			withCMA := compared.run(r, &now, 3*r.every, func(op int, cma bool) cpu.Stamp {
				took := c.slots
				if cma {
					took = c.cma
				}
				if op%3 == 0 {
					took += 1_000_000
				}
				if op < r.from && !cma {
					took *= 10
				}
				return took
			})
			want := 3 * r.compared()
			if c.faster {
				want = 3*r.every - r.from - 3*r.compared()
			}
			if compared.prefersCMA != c.faster || withCMA != want {
				t.Errorf("%s, class %d: CMA is faster: %t, %d operations used it; want %t, %d", c.name, class, compared.prefersCMA, withCMA, c.faster, want)
			}
		}
	}
}

// CMA has to be faster in both rounds.
func TestComparisonNeedsBothRounds(t *testing.T) {
	for class := range rhythms {
		r := &rhythms[class]
		for fast := range comparedRounds {
			var compared comparison
			var now cpu.Stamp
			compared.run(r, &now, r.every, func(op int, cma bool) cpu.Stamp {
				if turn, _ := r.turnOf(op); cma && turn/2 == fast {
					return 500
				}
				return 1000
			})
			if compared.prefersCMA {
				t.Errorf("class %d: CMA was faster only in round %d, and is preferred", class, fast)
			}
		}
	}
}

// If a program changes what it does, the next comparison notices.
func TestComparisonsFollowTheProgram(t *testing.T) {
	var compared comparison
	var now cpu.Stamp
	r := &rhythms[0]
	for _, faster := range []bool{false, true, true, false, true} {
		compared.run(r, &now, r.every, func(_ int, cma bool) cpu.Stamp {
			if cma == faster {
				return 700
			}
			return 1000
		})
		if compared.prefersCMA != faster {
			t.Errorf("CMA is preferred: %t, want %t", compared.prefersCMA, faster)
		}
	}
}

// Ranks take the same turns, whatever time it is there. Each way has as many.
func TestTurnsOfAComparison(t *testing.T) {
	for class := range rhythms {
		r := &rhythms[class]
		var one, other comparison
		turns := map[turn]int{}
		for op := range r.every {
			turn := one.next(r, cpu.Stamp(op))
			if again := other.next(r, cpu.Stamp(1000-7*op*op)); again != turn {
				t.Fatalf("operation %d has turn %d on one rank, and %d on another", op, turn, again)
			}
			turns[turn]++
			if isCompared := op >= r.from && op < r.from+2*r.compared(); isCompared != (turn != noTurn) {
				t.Fatalf("operation %d of class %d has turn %d", op, class, turn)
			}
		}
		if turns[slotsTurn] != r.compared() || turns[cmaTurn] != r.compared() {
			t.Errorf("class %d has turns %v", class, turns)
		}
	}
}
