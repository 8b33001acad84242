package shm

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/comm/internal/cpu"
)

// run carries out operations that take what cost says, one way or the other, and returns how many the second way has carried out.
func (p *pace) run(now *cpu.Stamp, ops int, cost func(op int, second bool) cpu.Stamp) (second int) {
	for op := range ops {
		turn := p.next(*now)
		isSecond := turn == secondWay || turn == preferred && p.second
		if isSecond {
			second++
		}
		*now += cost(op, isSecond)
	}
	return second
}

func TestPaceFindsTheFasterWay(t *testing.T) {
	for _, c := range []struct {
		name          string
		first, second cpu.Stamp
		faster        bool
	}{
		{"half the time", 1000, 500, true}, {"a tenth less", 1000, 900, true}, {"hardly less", 1000, 950, false},
		{"the same", 1000, 1000, false}, {"twice the time", 1000, 2000, false},
	} {
		var p pace
		var now cpu.Stamp
		// Every third operation is interrupted for long, and the first ones take longer the first way.
		second := p.run(&now, 3*trialEvery, func(op int, second bool) cpu.Stamp {
			took := c.first
			if second {
				took = c.second
			}
			if op%3 == 0 {
				took += 1_000_000
			}
			if op < trialBegin && !second {
				took *= 10
			}
			return took
		})
		switch tried := 3 * trialOps / 2; {
		case p.second != c.faster:
			t.Errorf("%s: the second way is preferred: %t", c.name, p.second)
		case !c.faster && second != tried:
			t.Errorf("%s: %d operations went the second way, want the %d of trials", c.name, second, tried)
		case c.faster && second != 3*trialEvery-trialBegin-tried:
			t.Errorf("%s: %d operations went the second way, want all but the first %d and %d of trials", c.name, second, trialBegin, tried)
		}
	}
}

// A program changes what it does, and the next trial finds that.
func TestPaceFollowsTheProgram(t *testing.T) {
	var p pace
	var now cpu.Stamp
	for _, faster := range []bool{false, true, true, false, true} {
		p.run(&now, trialEvery, func(_ int, second bool) cpu.Stamp {
			if second == faster {
				return 700
			}
			return 1000
		})
		if p.second != faster {
			t.Errorf("the second way is preferred: %t, want %t", p.second, faster)
		}
	}
}

// Whatever the times are, only whole ones are measured.
func TestPaceOfAnyTimes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p pace
		var now cpu.Stamp
		times := rapid.SliceOfN(rapid.Uint32(), 1, 100).Draw(t, "times")
		p.run(&now, 2*trialEvery, func(op int, _ bool) cpu.Stamp { return cpu.Stamp(times[op%len(times)]) })
		for _, turn := range p.times {
			for _, took := range turn {
				if took > 1<<32 {
					t.Fatalf("a time of %d was measured", took)
				}
			}
		}
	})
}

// All ranks of a team take the same turns, and each way has as many.
func TestTurnsOfATrial(t *testing.T) {
	var p pace
	turns := map[turn]int{}
	for op := range trialEvery {
		turn := p.next(cpu.Stamp(op))
		turns[turn]++
		if inTrial := op >= trialBegin && op < trialBegin+trialOps; inTrial != (turn != preferred) {
			t.Fatalf("operation %d has turn %d", op, turn)
		}
	}
	if turns[firstWay] != trialOps/2 || turns[secondWay] != trialOps/2 {
		t.Errorf("turns: %v", turns)
	}
}
