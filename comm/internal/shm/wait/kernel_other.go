//go:build !linux

package wait

import (
	"runtime"
	"time"
)

func futexWait(*uint32, uint32, time.Duration) {}
func futexWake(*uint32)                        {}
func schedYield()                              { runtime.Gosched() }

// CPUs returns nothing: the processors that this process may use are not known.
func CPUs() string { return "" }
