package topology

import (
	"io/fs"
	"math"
	"slices"
)

// Usable returns the machine whose / is root, without the CPUs that this process may not use.
func Usable(root fs.FS) (Machine, error) {
	m, err := Read(root)
	if err != nil {
		return m, err
	}
	allowed, err := Allowed()
	return m.Within(allowed), err
}

// Divide gives each of several workers its own cores, near its GPU if gpus names one for each worker. It does not bind memory.
// bindings is nil if there are too few cores, or if the locations of the GPUs are unknown. procs is how many CPUs each worker has,
// or its share of all CPUs.
func (m Machine) Divide(workers int, gpus []int) (bindings []Binding, procs []int) {
	bindings, err := Bind(m, Exclusive, workers, gpus)
	if err != nil {
		return nil, slices.Repeat([]int{max(1, len(m.CPUs)/workers)}, workers)
	}
	for i := range bindings {
		bindings[i].Nodes = nil
		procs = append(procs, len(bindings[i].CPUs))
	}
	return bindings, procs
}

// Share returns how many physical cores each worker has: the smallest number of any worker, divided among workers that share a
// binding. Without bindings, the workers share the machine.
func (m Machine) Share(bindings []Binding, workers int) int {
	if bindings == nil {
		return max(1, coreCount(m.CPUs)/workers)
	}
	users := make(map[string]int)
	for _, b := range bindings {
		users[FormatList(b.CPUs)]++
	}
	least := math.MaxInt
	for _, b := range bindings {
		least = min(least, m.Cores(b.CPUs)/users[FormatList(b.CPUs)])
	}
	return max(1, least)
}
