package drill

import (
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"
)

// A seed always chooses the same faults. Two at once hit different targets. Every kind of fault and every target is chosen.
func TestRandomFaults(t *testing.T) {
	const nodes, members, turns = 4, 3, 1000
	digits := regexp.MustCompile(`[0-9]+`)
	kinds := make(map[string]bool)
	choose := func(seed uint64) (what []string, targets map[int]bool) {
		r := rand.New(rand.NewPCG(seed, 0))
		targets = make(map[int]bool)
		for range turns {
			list := chooseFaults(r, nodes, members)
			if len(list) < 1 || len(list) > 2 || len(list) == 2 && list[0].host == list[1].host {
				t.Fatalf("%d at once: %s", len(list), describeFaults(list))
			}
			for _, f := range list {
				targets[f.host] = true
				kinds[digits.ReplaceAllString(f.begin.what, "N")] = true
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
	want := []string{
		"SIGABRT to a worker of node N", "SIGKILL to a worker of node N", "SIGSEGV to a worker of node N",
		"SIGKILL to the agent of node N, which is started again", "SIGTERM to the agent of node N, which is started again",
		"SIGKILL to member N of etcd, which is started again",
		"SIGSTOP to the agent of node N", "SIGSTOP to member N of etcd",
		"node N is cut off", "member N of etcd is cut off",
		"nodes N and N lose each other", "nodes N and N lose each other for long",
	}
	if got := slices.Sorted(maps.Keys(kinds)); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("chosen are %q, want %q", got, want)
	}
}

// checkSum takes the right sum, and no other.
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
