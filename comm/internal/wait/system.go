//go:build !schedule

package wait

import (
	"runtime"
	"time"
)

// Ranks that wait use the system through these functions, so that tests can simulate it (system_schedule.go).

// Now returns the current time.
func Now() time.Time { return time.Now() }

// YieldThread lets another thread run on this processor, if one waits for it.
func YieldThread() { schedYield() }

// yieldGoroutine lets other goroutines of this process run.
func yieldGoroutine() { runtime.Gosched() }

func currentCPU() uint32                    { return cpuOfThread() }
func moveTo(isWanted func(cpu uint32) bool) { move(isWanted) }

func sleepOn(word *uint32, value uint32, limit time.Duration) { futexWait(word, value, limit) }
func wake(word *uint32)                                       { futexWake(word) }

// These hold if there are more ranks than processors.
const (
	yieldsBeforePark = 100
	firstYields      = 8  // before the wait is timed
	yieldsPerLook    = 64 // after which a rank finds out again on which processor it is
)
