package wait

import (
	"encoding/hex"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// CPUs returns the processors that this process may use: a bit for each, the first ones first, in hexadecimal. Empty: not known.
func CPUs() string {
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		return ""
	}
	var set []byte
	for cpu, left := 0, allowed.Count(); left > 0; cpu++ {
		if cpu%8 == 0 {
			set = append(set, 0)
		}
		if allowed.IsSet(cpu) {
			set[cpu/8] |= 1 << (cpu % 8)
			left--
		}
	}
	return hex.EncodeToString(set)
}

func schedYield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// The operations of futex(2).
const (
	opWait = 0
	opWake = 1
)

// futexWait sleeps until another thread wakes the sleepers of word, at most for limit. It returns at once if word is not value.
func futexWait(word *uint32, value uint32, limit time.Duration) {
	timeout := unix.NsecToTimespec(int64(limit))
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), opWait, uintptr(value), uintptr(unsafe.Pointer(&timeout)), 0, 0)
}

// futexWake wakes all that sleep on word, in any process.
func futexWake(word *uint32) {
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), opWake, 1<<30, 0, 0, 0)
}
