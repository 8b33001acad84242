//go:build !schedule

package shm

import (
	"runtime"
	"time"
)

// What ranks that wait want from the system. See system_schedule.go for one that tests have in hand.

func timeNow() time.Time { return time.Now() }

// letOthersRun lets other goroutines of this process run, yield other threads of this processor.
func letOthersRun() { runtime.Gosched() }
func yield()        { schedYield() }

func processor() uint32                           { return thisProcessor() }
func moveTo(isWanted func(processor uint32) bool) { moveThread(isWanted) }

func sleepOn(word *uint32, value uint32, limit time.Duration) { futexWait(word, value, limit) }
func wake(word *uint32)                                       { futexWake(word) }
