//go:build !linux

package proc

// There is no C library here.
func entryOf(int) (Descriptor, bool) { return Descriptor{}, false }
