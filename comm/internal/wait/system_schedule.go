//go:build schedule && linux

package wait

import (
	"runtime"
	"time"
	"unsafe"

	"github.com/gorun/gorun/comm/internal/cpu"
)

// With the build tag schedule, simulated threads (package schedule) wait in the simulation. All others wait in the system.

var epoch = time.Now()

// Now is the time, of the machine if there is one.
func Now() time.Time {
	if m := cpu.Running(); m != nil {
		return epoch.Add(m.Now())
	}
	return time.Now()
}

func yieldGoroutine() {
	if m := cpu.Running(); m != nil {
		m.Yield()
		return
	}
	runtime.Gosched()
}

// YieldThread lets another thread run on this processor, if one waits for it.
func YieldThread() {
	if m := cpu.Running(); m != nil {
		m.Yield()
		return
	}
	schedYield()
}

// currentCPU is the processor that a test chooses.
func currentCPU() uint32 {
	if m := cpu.Running(); m != nil {
		return uint32(1 + m.Pick(2))
	}
	return cpuOfThread()
}

func moveTo(isWanted func(cpu uint32) bool) {
	if cpu.Running() == nil {
		move(isWanted)
	}
}

func sleepOn(word *uint32, value uint32, limit time.Duration) {
	if m := cpu.Running(); m != nil {
		at, _ := m.At(unsafe.Pointer(word))
		m.SleepOn(at, value, limit)
		return
	}
	futexWait(word, value, limit)
}

func wake(word *uint32) {
	if m := cpu.Running(); m != nil {
		at, _ := m.At(unsafe.Pointer(word))
		m.Wake(at)
		return
	}
	futexWake(word)
}

// So little that short runs come to its ends; see system.go.
const (
	yieldsBeforePark = 2
	firstYields      = 2
	yieldsPerLook    = 2
)
