//go:build !linux

package topology

import (
	"errors"
	"runtime"
)

// Allowed returns the CPUs that the system has: here a process may run on all of them.
func Allowed() ([]int, error) {
	all := make([]int, runtime.NumCPU())
	for i := range all {
		all[i] = i
	}
	return all, nil
}

// Apply fails on this system.
func Apply(_, _ []int) (restore func(), err error) {
	return nil, errors.New("workers can be bound to CPUs on Linux only")
}

// CanBindMemory is false on this system.
func CanBindMemory() bool { return false }
