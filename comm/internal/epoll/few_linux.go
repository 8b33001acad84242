package epoll

import (
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Few is descriptors that are waited for together, each known by an identifier of the caller's. Unlike a Set it is made anew
// for every wait.
type Few struct {
	fds   []unix.PollFd
	ids   []int
	ready []int
}

// Clear empties f.
func (f *Few) Clear() { f.fds, f.ids = f.fds[:0], f.ids[:0] }

// Add adds descriptor fd as id, to be waited for until one of events (of poll(2)) is there, or it has failed or ended.
func (f *Few) Add(fd, id int, events uint32) {
	f.fds, f.ids = append(f.fds, unix.PollFd{Fd: int32(fd), Events: int16(events)}), append(f.ids, id)
}

// Wait waits until one is ready, at most for limit, and returns which are. The slice is good until the next Wait. The thread
// sleeps, with what it has of the Go scheduler's; a signal wakes it, as the scheduler's do.
func (f *Few) Wait(limit time.Duration) []int {
	f.ready = f.ready[:0]
	timeout := unix.NsecToTimespec(limit.Nanoseconds())
	n, _, errno := syscall.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(unsafe.SliceData(f.fds))), uintptr(len(f.fds)),
		uintptr(unsafe.Pointer(&timeout)), 0, 0, 0)
	if n == 0 || errno != 0 {
		return nil
	}
	for i := range f.fds {
		if f.fds[i].Revents != 0 {
			f.ready = append(f.ready, f.ids[i])
		}
	}
	return f.ready
}
