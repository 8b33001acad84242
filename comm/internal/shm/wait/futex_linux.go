package wait

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	opWait = 0
	opWake = 1
)

// futexWait sleeps until another thread wakes the sleepers of word, at most for limit. It returns at once if word is not value.
func futexWait(word *uint32, value uint32, limit time.Duration) {
	timeout := unix.NsecToTimespec(int64(limit))
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), opWait, uintptr(value), uintptr(unsafe.Pointer(&timeout)), 0, 0)
}

// futexWake ends the sleep of all that sleep on word, in any process.
func futexWake(word *uint32) {
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), opWake, 1<<30, 0, 0, 0)
}

func schedYield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
