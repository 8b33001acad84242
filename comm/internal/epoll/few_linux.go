package epoll

import (
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Few is a few descriptors to wait for together, for each of which the caller chooses an identifier. Unlike a Set it is filled again for
// every wait.
type Few struct {
	fds   []unix.PollFd
	ids   []int
	ready []int
}

// Clear empties f.
func (f *Few) Clear() { f.fds, f.ids = f.fds[:0], f.ids[:0] }

// Add adds descriptor fd with identifier id. Wait waits until one of events (of poll(2)) has happened, or fd has failed or ended.
func (f *Few) Add(fd, id int, events uint32) {
	f.fds, f.ids = append(f.fds, unix.PollFd{Fd: int32(fd), Events: int16(events)}), append(f.ids, id)
}

// Wait waits until a descriptor is ready, at most for limit, and returns the identifiers of those that are. The slice is valid until the
// next Wait. The thread sleeps without telling the Go scheduler. A signal, such as the scheduler's, wakes it.
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
