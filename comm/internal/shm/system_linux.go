//go:build !schedule

package shm

import "syscall"

// What streams want from the system.

func takeBells(fd int, b []byte, flags uintptr) (n uintptr, errno syscall.Errno) {
	return receiveBells(fd, b, flags)
}
func sendBell(fd int) { sendByte(fd) }
func fence()          { fenceProcesses() }
