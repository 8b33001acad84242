package topology

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Apply binds the calling thread, and so a process that is then forked from it, to CPUs and to memory of NUMA nodes;
// an empty list leaves that as it is. The goroutine must be locked to its thread until restore has put back what
// was. It fails, and nothing is changed, if one of the CPUs is not there or not to be used by this process.
//
// Memory comes from the nodes while they have any free, then from others: a full node slows a worker down, but does
// not kill it. A kernel before 5.15 takes memory from the node on which the worker runs. If the system does not
// allow binding memory, as in some containers, Apply skips it (see CanBindMemory).
func Apply(cpus, nodes []int) (restore func(), err error) {
	undoCPUs, err := bindCPUs(cpus)
	if err != nil || len(nodes) == 0 {
		return undoCPUs, err
	}
	undoMemory := bindMemory(nodes)
	return func() { undoMemory(); undoCPUs() }, nil
}

func bindCPUs(cpus []int) (undo func(), err error) {
	if len(cpus) == 0 {
		return func() {}, nil
	}
	was, err := affinity()
	if err != nil {
		return nil, err
	}
	undo = func() { _ = setAffinity(was) } // it was possible before; if no longer, the kernel has chosen already
	// The kernel ignores CPUs that do not exist, and fails only if none is left.
	if err := setAffinity(maskOf(cpus, maxCPUs)); err != nil && !errors.Is(err, unix.EINVAL) {
		return nil, err
	}
	now, err := affinity()
	if err != nil {
		undo()
		return nil, err
	}
	got := now.list()
	missing := slices.DeleteFunc(slices.Clone(cpus), func(cpu int) bool { return slices.Contains(got, cpu) })
	if len(missing) > 0 {
		undo()
		return nil, fmt.Errorf("cannot bind to CPUs %s: this process may not use %s, or the machine has no such CPU", FormatList(cpus), FormatList(missing))
	}
	return undo, nil
}

// CanBindMemory reports whether the system lets the calling thread bind memory. If not, Apply skips it.
func CanBindMemory() bool {
	mode, nodes, err := mempolicy()
	return err == nil && setMempolicy(mode, nodes) == nil
}

func bindMemory(nodes []int) (undo func()) {
	mode, was, err := mempolicy()
	if err != nil {
		return func() {}
	}
	if setMempolicy(unix.MPOL_PREFERRED_MANY, maskOf(nodes, maxNodes)) != nil {
		_ = setMempolicy(unix.MPOL_LOCAL, maskOf(nil, maxNodes)) // the CPUs are near
	}
	return func() { _ = setMempolicy(mode, was) }
}

// mempolicy returns the policy by which the calling thread gets mempolicy, and the nodes that it is about.
func mempolicy() (mode int, nodes mask, err error) {
	var m int32
	nodes = maskOf(nil, maxNodes)
	_, _, errno := unix.Syscall6(unix.SYS_GET_MEMPOLICY, uintptr(unsafe.Pointer(&m)), uintptr(unsafe.Pointer(&nodes[0])), maxNodes, 0, 0, 0)
	if errno != 0 {
		return 0, nil, os.NewSyscallError("get_mempolicy", errno)
	}
	return int(m), nodes, nil
}

// The kernel counts one more bit than it reads.
func setMempolicy(mode int, of mask) error {
	_, _, errno := unix.Syscall(unix.SYS_SET_MEMPOLICY, uintptr(mode), uintptr(unsafe.Pointer(&of[0])), maxNodes+1)
	if errno != 0 {
		return os.NewSyscallError("set_mempolicy", errno)
	}
	return nil
}
