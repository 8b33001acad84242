package drill

import (
	"math/rand/v2"
	"testing"
)

// What a seed chooses does not depend on how it went; two faults at once hit different things; and none is never chosen.
func TestRandomFaults(t *testing.T) {
	const nodes, members, turns = 4, 3, 1000
	choose := func(seed uint64) (what []string, targets map[target]bool) {
		r := rand.New(rand.NewPCG(seed, 0))
		targets = make(map[target]bool)
		for range turns {
			list := chooseFaults(r, nodes, members)
			if len(list) < 1 || len(list) > 2 || len(list) == 2 && list[0].on == list[1].on {
				t.Fatalf("%d at once: %s", len(list), describeFaults(list))
			}
			for _, f := range list {
				targets[f.on] = true
			}
			what = append(what, describeFaults(list))
		}
		return what, targets
	}
	first, targets := choose(1)
	again, _ := choose(1)
	other, _ := choose(2)
	same := 0
	for i := range first {
		if first[i] != again[i] {
			t.Fatalf("the same seed chooses %q and %q", first[i], again[i])
		}
		if first[i] == other[i] {
			same++
		}
	}
	if same > turns/2 {
		t.Errorf("%d of %d faults are those of another seed", same, turns)
	}
	if len(targets) != nodes+members {
		t.Errorf("hit are %d, want %d: %v", len(targets), nodes+members, targets)
	}
}

// A wrong sum is seen wherever it is, and a right one is not taken for one.
func TestCheckSum(t *testing.T) {
	const size = 3
	for turn := range len(lengths) {
		sum := make([]int, lengths[turn])
		for rank := range size {
			for i, n := range numbers(turn, rank) {
				sum[i] += n
			}
		}
		if err := checkSum(turn, size, sum); err != nil {
			t.Error(err)
		}
		if err := checkSum(turn+1, size, sum); err == nil {
			t.Error("the sum of another turn passes")
		}
		sum[len(sum)-1]++
		if err := checkSum(turn, size, sum); err == nil {
			t.Error("a wrong sum passes")
		}
	}
}
