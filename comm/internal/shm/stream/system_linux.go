//go:build !schedule

package stream

import "syscall"

// What streams use of the kernel; see system_schedule.go for what tests use instead.

func receiveDoorbells(fd int, b []byte, flags uintptr) (n uintptr, errno syscall.Errno) {
	return receive(fd, b, flags)
}
func sendDoorbell(fd int) { sendByte(fd) }
func fence()              { fenceProcesses() }
