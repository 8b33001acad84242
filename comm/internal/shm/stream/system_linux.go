//go:build !schedule

package stream

import "syscall"

// Streams use the kernel through these functions, so that tests can simulate it (system_schedule.go).

func receiveDoorbells(fd int, b []byte, flags uintptr) (n uintptr, errno syscall.Errno) {
	return receive(fd, b, flags)
}
func sendDoorbell(fd int) { sendByte(fd) }
func fence()              { fenceProcesses() }

const (
	// LongestRecord is the most bytes of a record. Longer messages are cut into several, so that the reader reads one while the writer
	// writes the next. Go copies records this short through the caches.
	LongestRecord = 16 << 10
	pollsPerCheck = 1024 // unsuccessful polls after which it is worth checking the socket
)
