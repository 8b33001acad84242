//go:build !linux

package wait

import (
	"runtime"
	"time"
)

func futexWait(*uint32, uint32, time.Duration) {}
func futexWake(*uint32)                        {}
func schedYield()                              { runtime.Gosched() }
func cpuOfThread() uint32                      { return 0 }
func move(func(cpu uint32) bool)               {}

// CPUs returns nothing: the processors that this process may use are not known.
func CPUs() string { return "" }
