//go:build schedule && linux

package shm

import (
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/comm/internal/cpu"
	"github.com/gorun/gorun/comm/internal/schedule"
)

// With the build tag schedule, threads of a machine of package schedule want from it what others want from the system.

// running is the machine that the caller is a thread of, or nil.
func running() *schedule.Machine {
	if m := cpu.Simulated(); m != nil && m.Running() != nil {
		return m
	}
	return nil
}

var epoch = time.Now()

func timeNow() time.Time {
	if m := running(); m != nil {
		return epoch.Add(m.Now())
	}
	return time.Now()
}

func letOthersRun() {
	if m := running(); m != nil {
		m.Yield()
		return
	}
	runtime.Gosched()
}

func yield() {
	if m := running(); m != nil {
		m.Yield()
		return
	}
	schedYield()
}

// processor is where a test says that the thread is.
func processor() uint32 {
	if m := running(); m != nil {
		return uint32(1 + m.Pick(2))
	}
	return thisProcessor()
}

func moveTo(isWanted func(processor uint32) bool) {
	if running() == nil {
		moveThread(isWanted)
	}
}

func sleepOn(word *uint32, value uint32, limit time.Duration) {
	if m := running(); m != nil {
		at, _ := m.At(unsafe.Pointer(word))
		m.SleepOn(at, value, limit)
		return
	}
	futexWait(word, value, limit)
}

func wake(word *uint32) {
	if m := running(); m != nil {
		at, _ := m.At(unsafe.Pointer(word))
		m.Wake(at)
		return
	}
	futexWake(word)
}

// Simulated sockets have negative numbers: that of end k of a pair, the other end of which is 1-k, is -2-k. A bell is sent to the
// other end.

func takeBells(fd int, b []byte, flags uintptr) (n uintptr, errno syscall.Errno) {
	m := running()
	if m == nil {
		return receiveBells(fd, b, flags)
	}
	take := len(b)
	if flags&unix.MSG_PEEK != 0 {
		take = 0
	}
	switch n := m.Bells(fd, take); {
	case n > 0:
		return uintptr(n), 0
	case n < 0: // its end
		return 0, 0
	default:
		return 0, unix.EAGAIN
	}
}

func sendBell(fd int) {
	if m := running(); m != nil {
		m.Ring(-5 - fd)
		return
	}
	sendByte(fd)
}

func fence() {
	if m := running(); m != nil {
		m.Fence(schedule.FenceAll)
		return
	}
	fenceProcesses()
}
