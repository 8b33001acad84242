package affinity

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// CPU returns the processor of this thread, from 1; 0: not known.
func CPU() uint32 {
	var cpu uint32
	if _, _, err := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&cpu)), 0, 0); err != 0 {
		return 0
	}
	return cpu + 1
}

// Move moves this thread to the first processor that isWanted and that it may use. The kernel may move it again later.
func Move(isWanted func(cpu uint32) bool) {
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
