//go:build !linux

package tie

import "time"

func setUserTimeout(int, time.Duration) {}
