package shm

import (
	"fmt"
	"slices"
	"testing"

	"github.com/gorun/gorun/comm/internal/cpu"
)

// In a comparison, ranks use slots and CMA in turns. After it, they use what they prefer.
func TestTurnsOfOperations(t *testing.T) {
	teams := newTeams(t, 2)
	sharing(t, teams)
	together(t, teams, func(team *Team) error {
		const n = 40_000
		out := make([]byte, 2*n)
		for seq := uint64(1); seq <= 1500; seq++ {
			comparison := &team.comparisons[gatheringAll][sizeClass(n)]
			if seq == 1200 {
				comparison.prefersCMA = true
			}
			turn, _ := rhythms[sizeClass(n)].turnOf(int(seq - 1))
			before := team.Sent
			team.Begin(seq, Call{What: seq}, 0)
			if err := same(team.AllGather(out, input(seq, team.me, n)), out, concat(seq, 2, n)); err != nil {
				return err
			}
			throughSlots := team.Sent > 0
			switch {
			case turn >= 0 && throughSlots != (turn%2 == 0):
				return fmt.Errorf("operation %d has turn %d, and used slots: %t", seq, turn, throughSlots)
			case seq > 1200 && seq < 1205 && preferences(cpu.Load(&team.ranks[1-team.me].preferences)).of(gatheringAll, 0) < prefersSlots:
				return fmt.Errorf("after operation %d, with %d before, the other rank says that it cannot read", seq, before)
			case seq > 1202 && throughSlots:
				return fmt.Errorf("operation %d has used slots though both prefer CMA", seq)
			}
		}
		return nil
	})
}

// Before the first comparison, ranks use CMA for long buffers, if each has a processor.
func TestLongBuffersBeforeTheFirstComparison(t *testing.T) {
	for _, op := range operations {
		if !slices.Contains(withPrivateMemory, op.name) {
			continue
		}
		for _, n := range []int{1<<20 - 1, 1 << 20} {
			for _, oversubscribed := range []bool{false, true} {
				teams := newTeams(t, 2)
				sharing(t, teams)
				together(t, teams, func(team *Team) error {
					team.waiter.Oversubscribed = oversubscribed
					for seq := uint64(1); seq <= 10; seq++ {
						team.populated = 0
						team.Begin(seq, Call{What: seq}, seq<<40)
						if err := op.run(team, ordinary, seq, n, int(seq)%2, Reduction{}); err != nil {
							return err
						}
						// By the third operation, each rank knows what the other one says. In a scatter, only the root has a buffer for others.
						slots, fills := team.populated != 0, op.name != "scatter" || int(seq)%2 == team.me
						if seq > 2 && slots != (fills && (n < 1<<20 || oversubscribed)) {
							t.Errorf("%s #%d of %d bytes, oversubscribed: %t, has used slots: %t", op.name, seq, n, oversubscribed, slots)
						}
					}
					return nil
				})
			}
		}
	}
}
