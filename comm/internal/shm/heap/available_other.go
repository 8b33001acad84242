//go:build !linux

package heap

import "math"

func available() int { return math.MaxInt }
