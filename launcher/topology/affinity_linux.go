package topology

import (
	"math/bits"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Allowed returns the CPUs that the calling thread may run on, sorted. Unless a thread was given its own, they are
// those of the process.
func Allowed() ([]int, error) {
	m, err := affinity()
	return m.list(), err
}

// affinity returns the CPUs that the calling thread may run on. The kernel requires room for all CPUs that it
// could have, which may be more than the 1024 of unix.CPUSet.
func affinity() (mask, error) {
	for size := 1024; ; size *= 2 {
		m := make(mask, size/bits.UintSize)
		_, _, errno := unix.RawSyscall(unix.SYS_SCHED_GETAFFINITY, 0, uintptr(size/8), uintptr(unsafe.Pointer(&m[0])))
		if errno == 0 {
			return m, nil
		}
		if errno != unix.EINVAL || size == maxCPUs {
			return nil, os.NewSyscallError("sched_getaffinity", errno)
		}
	}
}

func setAffinity(m mask) error {
	_, _, errno := unix.RawSyscall(unix.SYS_SCHED_SETAFFINITY, 0, uintptr(len(m)*bits.UintSize/8), uintptr(unsafe.Pointer(&m[0])))
	if errno != 0 {
		return os.NewSyscallError("sched_setaffinity", errno)
	}
	return nil
}

// Powers of two that exceed what any kernel supports. Greater numbers are not CPUs or nodes.
const (
	maxCPUs  = 1 << 16
	maxNodes = 1 << 10
)

// mask is a set of numbers in the form of system calls.
type mask []uintptr

// maskOf leaves out numbers that are not from 0 to size-1.
func maskOf(list []int, size int) mask {
	m := make(mask, size/bits.UintSize)
	for _, n := range list {
		if n >= 0 && n < size {
			m[n/bits.UintSize] |= 1 << (n % bits.UintSize)
		}
	}
	return m
}

func (m mask) list() []int {
	var list []int
	for i, word := range m {
		for ; word != 0; word &= word - 1 {
			list = append(list, i*bits.UintSize+bits.TrailingZeros(uint(word)))
		}
	}
	return list
}
