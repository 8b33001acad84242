//go:build !schedule

package cma

// Read fills dst with the memory at address from of process pid.
func Read(pid int, dst []byte, from uint64) error { return read(pid, dst, from) }
