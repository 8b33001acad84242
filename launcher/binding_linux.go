package launcher

import (
	"fmt"
	"math/bits"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// bindThread binds the calling thread, and so a process that is then forked from it, to CPUs and its memory to NUMA nodes;
// an empty list leaves that as it is. The goroutine must be locked to its thread until restore has put back what
// was. It fails, and nothing is changed, if one of the CPUs is not there or not to be used by this process. If the
// system does not let memory be bound, as in some containers, it is left out (see memoryBound).
func bindThread(cpus, nodes []int) (restore func(), err error) {
	undoCPUs := func() {}
	if len(cpus) > 0 {
		if undoCPUs, err = bindCPUs(cpus); err != nil {
			return nil, err
		}
	}
	if len(nodes) == 0 {
		return undoCPUs, nil
	}
	mode, was, err := memoryPolicy()
	if err == nil {
		err = setMemoryPolicy(unix.MPOL_BIND, nodeMaskOf(nodes))
	}
	if err != nil {
		return undoCPUs, nil
	}
	return func() { _ = setMemoryPolicy(mode, was); undoCPUs() }, nil // as it was before is always possible
}

func bindCPUs(cpus []int) (undo func(), err error) {
	var was, want, got unix.CPUSet
	if err := unix.SchedGetaffinity(0, &was); err != nil {
		return nil, fmt.Errorf("cannot bind to CPUs %v: %w", cpus, err)
	}
	for _, cpu := range cpus {
		want.Set(cpu)
	}
	undo = func() { _ = unix.SchedSetaffinity(0, &was) } // if no longer possible, the kernel has chosen already
	// The kernel leaves out what is not there, and fails only if nothing is left.
	_ = unix.SchedSetaffinity(0, &want)
	err = unix.SchedGetaffinity(0, &got)
	missing := slices.DeleteFunc(slices.Clone(cpus), got.IsSet)
	if err != nil || len(missing) > 0 {
		undo()
		return nil, fmt.Errorf("cannot bind to CPUs %v: this process may not use %v, or the machine has no such CPU", cpus, missing)
	}
	return undo, nil
}

// memoryBound reports whether memory of the calling thread comes from nodes that were chosen.
func memoryBound() bool {
	mode, _, err := memoryPolicy()
	return err == nil && mode != unix.MPOL_DEFAULT && mode != unix.MPOL_LOCAL
}

// maxNodes is how many NUMA nodes Linux has at most.
const maxNodes = 1024

type nodeMask [maxNodes / bits.UintSize]uint

func nodeMaskOf(nodes []int) (m nodeMask) {
	for _, n := range nodes {
		if n >= 0 && n < maxNodes {
			m[n/bits.UintSize] |= 1 << (n % bits.UintSize)
		}
	}
	return m
}

func memoryPolicy() (mode int32, nodes nodeMask, err error) {
	_, _, errno := unix.Syscall6(unix.SYS_GET_MEMPOLICY, uintptr(unsafe.Pointer(&mode)), uintptr(unsafe.Pointer(&nodes)), maxNodes, 0, 0, 0)
	if errno != 0 {
		return 0, nodes, errno
	}
	return mode, nodes, nil
}

func setMemoryPolicy(mode int32, nodes nodeMask) error {
	// The kernel counts one more bit than it reads.
	_, _, errno := unix.Syscall(unix.SYS_SET_MEMPOLICY, uintptr(mode), uintptr(unsafe.Pointer(&nodes)), maxNodes+1)
	if errno != 0 {
		return errno
	}
	return nil
}
