//go:build !schedule

package wait

import (
	"runtime"
	"time"

	"github.com/gorun/gorun/comm/internal/affinity"
)

// Ranks that wait use the system through these functions, so that tests can simulate it (system_schedule.go).

// Now returns the current time.
func Now() time.Time { return time.Now() }

// yieldGoroutine lets other goroutines of this process run, yieldThread other threads on this processor.
func yieldGoroutine() { runtime.Gosched() }
func yieldThread()    { schedYield() }

func currentCPU() uint32                    { return affinity.CPU() }
func moveTo(isWanted func(cpu uint32) bool) { affinity.Move(isWanted) }

func sleepOn(word *uint32, value uint32, limit time.Duration) { futexWait(word, value, limit) }
func wake(word *uint32)                                       { futexWake(word) }

// These hold if there are more ranks than processors.
const (
	yieldsBeforePark = 100
	firstYields      = 8  // before the wait is timed
	yieldsPerLook    = 64 // after which a rank finds out again on which processor it is
)
