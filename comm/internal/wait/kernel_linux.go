package wait

import (
	"encoding/hex"
	"runtime"
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

// cpuOfThread returns the processor of this thread, from 1; 0: not known.
func cpuOfThread() uint32 {
	var cpu uint32
	if _, _, err := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&cpu)), 0, 0); err != 0 {
		return 0
	}
	return cpu + 1
}

// move moves this thread to the first processor that isWanted and that it may use. The kernel may move it again later.
func move(isWanted func(cpu uint32) bool) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var allowed, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		return
	}
	for cpu, left := 0, allowed.Count(); left > 0; cpu++ {
		if !allowed.IsSet(cpu) {
			continue
		}
		if left--; isWanted(uint32(cpu) + 1) {
			one.Set(cpu)
			if unix.SchedSetaffinity(0, &one) == nil {
				unbind(&allowed)
			}
			return
		}
	}
}

// unbind lets this thread use the processors that it was allowed to use. Linux remembers what a thread has asked for, and gives it no more
// when its cpuset grows later. So a thread that was allowed to use its whole cpuset asks for everything.
func unbind(allowed *unix.CPUSet) {
	var everything, now unix.CPUSet
	everything.Fill()
	if unix.SchedSetaffinity(0, &everything) != nil || unix.SchedGetaffinity(0, &now) != nil || now != *allowed {
		_ = unix.SchedSetaffinity(0, allowed)
	}
}

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
