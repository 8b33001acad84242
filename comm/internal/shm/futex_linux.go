package shm

import (
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	futexWait = 0
	futexWake = 1

	membarrierGlobal   = 1 << 1 // MEMBARRIER_CMD_GLOBAL_EXPEDITED
	membarrierRegister = 1 << 2 // MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED
)

// sleepOn sleeps until somebody wakes those who sleep on word, unless it is not value any more.
func sleepOn(word *uint32, value uint32) {
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWait, uintptr(value), 0, 0, 0)
}

// wake ends the sleep of all that sleep on word, in any process.
func wake(word *uint32) {
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWake, 1<<30, 0, 0, 0)
}

// registered says whether fenceAll of any process reaches this one.
var registered = sync.OnceValue(func() bool {
	_, _, errno := unix.Syscall(unix.SYS_MEMBARRIER, membarrierRegister, 0, 0)
	return errno == 0
})

// fenceAll makes every thread of every process that is registered see what this one has written, and the other way round,
// as if each of them had executed a full fence.
func fenceAll() {
	_, _, _ = unix.Syscall(unix.SYS_MEMBARRIER, membarrierGlobal, 0, 0)
}

func yield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// processors is how many processors this process may use.
func processors() int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil || set.Count() == 0 {
		return runtime.NumCPU()
	}
	return set.Count()
}
