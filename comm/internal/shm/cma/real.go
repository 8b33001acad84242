//go:build linux && !schedule

package cma

// Read fills dst, of at most a few MiB, with p's memory at address from. dst may be empty, to find out whether this process can read p's memory.
func (p Process) Read(dst []byte, from uint64) error { return p.read(dst, from) }
