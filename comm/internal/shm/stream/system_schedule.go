//go:build schedule && linux

package stream

import (
	"math"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/comm/internal/cpu"
	"github.com/gorun/gorun/comm/internal/shm/segment"
	"github.com/gorun/gorun/comm/internal/testing/schedule"
)

// With the build tag schedule, simulated threads (package schedule) use simulated sockets and fences. All others use the kernel's.
//
// Simulated sockets have negative numbers: that of end k of a pair, the other end of which is 1-k, is -2-k. A doorbell goes to
// the other end.

// SimulatedFD is the socket of end k of a simulated stream.
func SimulatedFD(k int) int { return -2 - k }

// Simulated is end k of a stream for tests, in memory of a machine of package schedule, with rings of ringSize bytes.
func Simulated(mem []byte, k, ringSize int) *Stream {
	headers := newHeaders(mem)
	ring := func(i int) []byte { return mem[segment.PageSize+i*ringSize:][:ringSize:ringSize] }
	return &Stream{
		fd:  SimulatedFD(k),
		in:  ringReader{end: end{header: &headers[1-k], mem: ring(1 - k)}},
		out: ringWriter{end: end{header: &headers[k], mem: ring(k)}, limit: uint64(ringSize), populated: math.MaxUint64},
	}
}

func receiveDoorbells(fd int, b []byte, flags uintptr) (n uintptr, errno syscall.Errno) {
	m := cpu.Running()
	if m == nil {
		return receive(fd, b, flags)
	}
	take := len(b)
	if flags&unix.MSG_PEEK != 0 {
		take = 0
	}
	switch n := m.Receive(fd, take); {
	case n > 0:
		return uintptr(n), 0
	case n < 0: // its end
		return 0, 0
	default:
		return 0, unix.EAGAIN
	}
}

func sendDoorbell(fd int) {
	if m := cpu.Running(); m != nil {
		m.Send(-5 - fd)
		return
	}
	sendByte(fd)
}

func fence() {
	if m := cpu.Running(); m != nil {
		m.Fence(schedule.FenceAll)
		return
	}
	fenceProcesses()
}

// So little that short runs come to its ends; see system_linux.go.
const (
	LongestRecord = 160
	pollsPerCheck = 2
)
