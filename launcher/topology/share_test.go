package topology

import (
	"slices"
	"testing"
)

// A machine of 8 cores with two threads each: CPUs 0 to 7 and 8 to 15.
func eightCores() (m Machine) {
	for id := range 16 {
		m.CPUs = append(m.CPUs, CPU{ID: id, Core: id % 8})
	}
	return m
}

func TestShare(t *testing.T) {
	half := []Binding{{CPUs: []int{0, 1, 2, 3, 8, 9, 10, 11}}, {CPUs: []int{4, 5, 6, 7, 12, 13, 14, 15}}}
	for _, c := range []struct {
		name     string
		bindings []Binding
		nproc    int
		want     int
	}{
		{"unbound", nil, 2, 4},
		{"more workers than cores", nil, 20, 1},
		{"half of the machine each", half, 2, 4},
		{"two in each half", append(half, half...), 4, 2},
		{"uneven", []Binding{{CPUs: []int{0, 1, 2}}, {CPUs: []int{3, 4}}}, 2, 2},
	} {
		if got := eightCores().Share(c.bindings, c.nproc); got != c.want {
			t.Errorf("%s: %d threads, want %d", c.name, got, c.want)
		}
	}
}

// TestDivide: cores of their own if there are enough, memory from anywhere, and as many threads as that is CPUs.
func TestDivide(t *testing.T) {
	bindings, procs := eightCores().Divide(3, nil)
	if len(bindings) != 3 || len(bindings[0].CPUs) != 6 || bindings[0].Nodes != nil || !slices.Equal(procs, []int{6, 6, 4}) {
		t.Errorf("%v, %v", bindings, procs)
	}
	for workers, gpus := range map[int][]int{9: nil, 4: {}} { // too few cores; GPUs that are not known
		if bindings, procs := eightCores().Divide(workers, gpus); bindings != nil || len(procs) != workers || procs[0] != 16/workers {
			t.Errorf("%d workers: %v, %v", workers, bindings, procs)
		}
	}
}
