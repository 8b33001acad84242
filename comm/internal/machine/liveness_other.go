//go:build !linux

package machine

import "time"

// ProcessState returns nothing on this system.
func ProcessState(int) string { return "" }

// AwaitExit returns that it is not known on this system.
func AwaitExit(int, time.Duration) (ended, known bool) { return false, false }
