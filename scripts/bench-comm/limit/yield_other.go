//go:build !linux

package limit

import "runtime"

func yield() { runtime.Gosched() }
