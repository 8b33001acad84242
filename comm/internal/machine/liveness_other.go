//go:build !linux

package machine

import "time"

// ProcessState says nothing on this system.
func ProcessState(int) string { return "" }

// AwaitExit knows nothing on this system.
func AwaitExit(int, time.Duration) (ended, known bool) { return false, false }
