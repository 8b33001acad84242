//go:build !schedule

package stream

import "syscall"

// Streams use the kernel through these functions, so that tests can simulate it (system_schedule.go).

func receiveDoorbells(fd int, b []byte, flags uintptr) (n uintptr, errno syscall.Errno) {
	return receive(fd, b, flags)
}
func sendDoorbell(fd int) { sendByte(fd) }
func fence()              { fenceProcesses() }
