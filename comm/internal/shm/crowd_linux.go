package shm

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// thisProcessor is the one that this thread is on, from 1.
func thisProcessor() uint32 {
	var cpu uint32
	if _, _, err := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&cpu)), 0, 0); err != 0 {
		return 0
	}
	return cpu + 1
}

// moveThread moves this thread to the first processor that isWanted and that it may use. It stays as free to be taken elsewhere as
// before.
func moveThread(isWanted func(processor uint32) bool) {
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
				_ = unix.SchedSetaffinity(0, &allowed) // nothing new
			}
			return
		}
	}
}
