package shm

import (
	"errors"
	"fmt"
	"testing"

	"github.com/gorun/gorun/comm/internal/cpu"
	"github.com/gorun/gorun/comm/internal/wait"
	"github.com/gorun/gorun/env/testing/testkit"
)

// A rank that finds that another one has made another call, now or long ago, finds the first calls that differ, or between which
// numbers they are.
func TestTheFirstDifferenceIsFound(t *testing.T) {
	const calls = 50
	for _, c := range []struct {
		name      string
		different uint64 // the number of the call that differs
		skipped   bool   // the team has no part in that call
		behind    bool   // rank 1 compares when rank 0 has made all its calls
	}{
		{"the last", calls, false, false}, {"the first", 1, false, false}, {"in the midst", 20, false, false},
		{"the first, seen from behind", 1, false, true}, {"in the midst, seen from behind", 20, false, true},
		{"one of another kind", 20, true, false}, {"one of another kind, seen from behind", 20, true, true},
	} {
		teams := newTeams(t, 2)
		call := func(r int, seq uint64) Call {
			if seq == c.different {
				return Call{What: seq, RootAndBefore: uint64(r)}
			}
			return Call{What: seq}
		}
		made := func(r int, last uint64) {
			history := uint64(0)
			for seq := teams[r].seq + 1; seq <= last; seq++ {
				if seq >= c.different {
					history = uint64(1+r) << 50
				}
				if seq == c.different && c.skipped {
					continue
				}
				teams[r].Begin(seq, call(r, seq), history|seq<<32)
				teams[r].done(1)
			}
		}
		made(0, calls)
		last := uint64(calls)
		if c.behind {
			last = c.different + 5
		}
		made(1, last)
		m, ok := errors.AsType[*Mismatch](teams[1].CompareAll())
		first := c.different
		if c.skipped {
			first++
		}
		if !ok || m.Rank != 0 || m.Agreed != c.different-1 || m.Mine.Seq != first || m.Theirs.Seq != first || m.Mine.Call != call(1, first) || m.Theirs.Call != call(0, first) {
			t.Errorf("%s: got %+v", c.name, m)
		}
		if err := teams[1].compare(0); !errors.As(err, &m) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// No rank runs so far ahead that the others could not compare their calls with its own any more, whatever it calls.
func TestRanksBoundTheirLead(t *testing.T) {
	far := errors.New("far ahead")
	for name, call := range map[string]func(t *Team) error{
		"short":             func(t *Team) error { return t.Broadcast(make([]byte, 8), 0) },
		"through slots":     func(t *Team) error { return t.Broadcast(make([]byte, 3000), 0) },
		"one and the other": func(t *Team) error { return t.Scatter(make([]byte, 1+t.op%2*3000), make([]byte, 3*(1+t.op%2*3000)), 0) },
		"to another":        func(t *Team) error { return t.Gather(nil, make([]byte, 3000), 2) },
	} {
		team := newTeams(t, 3)[0]
		team.onLongWait = func(int, wait.LongWait) error { return far }
		made := 0
		var err error
		for ; made < 1000 && err == nil; made++ {
			team.Begin(uint64(made+1), Call{}, uint64(made)<<40)
			err = call(team)
		}
		if !errors.Is(err, far) || made < mostSkew || made > mostSkew+2 {
			t.Errorf("%s: %d calls, %v", name, made, err)
		}
	}
}

// Operations go on when their numbers, and the times with these numbers, overflow.
func TestOperationsWithoutEnd(t *testing.T) {
	testkit.WithoutRace(t)
	lost := errors.New("waits for what has been")
	for _, n := range []int{2, 3} {
		teams := newTeams(t, n)
		for _, team := range teams {
			waits := 0
			team.onLongWait = func(int, wait.LongWait) error {
				if waits++; waits > 3000 { // of 20 ms
					return lost
				}
				return nil
			}
		}
		for lap := uint64(1); lap < 300; lap++ { // of 2^32 operations each, of which a few are carried out
			for r, team := range teams {
				team.op, team.skewBoundUntil = lap<<32-2, 0
				cpu.Store(&team.ranks[r].clock, at(team.op, 1))
				team.ranks[r].flag, team.ranks[r].records = 0, [recordsPerRank]OpRecord{}
			}
			together(t, teams, func(team *Team) error {
				for i := range 8 {
					op := operations[(int(lap)*3+i)%len(operations)]
					if lap < 250 {
						op = operations[1] // broadcasts from one rank: some never look at each other
					}
					size, root := []int{100, 5000}[i%2], i%n
					if lap > 1 && lap < 250 {
						size, root = 100, 0
					}
					team.Begin(uint64(i), Call{What: uint64(i)}, lap<<40|uint64(i)<<32)
					if err := op.run(team, ordinary, uint64(i), size, root, reductions["compose"]); err != nil {
						return fmt.Errorf("lap %d, %s of %d bytes: %w", lap, op.name, size, err)
					}
				}
				return nil
			})
			if t.Failed() {
				return
			}
		}
	}
}
