//go:build !schedule

package wait

import (
	"runtime"
	"time"
)

// What ranks that wait use of the system. See system_schedule.go for what tests use instead.

// Now is the time.
func Now() time.Time { return time.Now() }

// yieldGoroutine lets other goroutines of this process run, yieldThread other threads of this processor.
func yieldGoroutine() { runtime.Gosched() }
func yieldThread()    { schedYield() }

func currentCPU() uint32                    { return thisCPU() }
func moveTo(isWanted func(cpu uint32) bool) { moveThread(isWanted) }

func sleepOn(word *uint32, value uint32, limit time.Duration) { futexWait(word, value, limit) }
func wake(word *uint32)                                       { futexWake(word) }
