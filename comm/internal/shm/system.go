package shm

import (
	"runtime"
	"time"
)

// What ranks that wait want from the system.

func timeNow() time.Time { return time.Now() }

// letOthersRun lets other goroutines of this process run.
func letOthersRun() { runtime.Gosched() }
