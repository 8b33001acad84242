//go:build !linux

package affinity

// CPU returns 0: the processor of this thread is not known.
func CPU() uint32 { return 0 }

// Move does nothing.
func Move(func(cpu uint32) bool) {}
