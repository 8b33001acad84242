package proc

import (
	"sync/atomic"
	"syscall"
)

// A Descriptor identifies the file that a descriptor refers to. The kernel reuses the numbers of descriptors, so a child compares the entry with the
// file that the number refers to now, and closes no other file. The zero Descriptor is no entry.
type Descriptor struct{ Device, Inode uint64 }

// entries are the descriptors that a forked child of this process must not keep, by number: as long as a child has a connection, its other end
// does not learn that this process has died. Programs in Go do not fork. So there is a list only if somebody calls KeepDescriptors, as the C
// library of package comm does.
var entries []Descriptor

// KeepDescriptors makes Own write to list, by the number of the descriptor. It comes before all calls of Own.
func KeepDescriptors(list []Descriptor) { entries = list }

// Own adds a descriptor to the list.
func Own(fd int) {
	if fd < 0 || fd >= len(entries) {
		return
	}
	if e, ok := entryOf(fd); ok {
		write(fd, e)
	}
}

// Disown removes a descriptor from the list. That is necessary before an epoll or an eventfd is closed: all of them are one file.
func Disown(fd int) {
	if fd >= 0 && fd < len(entries) {
		write(fd, Descriptor{})
	}
}

func write(fd int, e Descriptor) {
	atomic.StoreUint64(&entries[fd].Device, e.Device)
	atomic.StoreUint64(&entries[fd].Inode, e.Inode)
}

// OwnConn is Own for a connection, a listener or a file, if it has a descriptor.
func OwnConn(c any) {
	if len(entries) == 0 {
		return
	}
	if has, ok := c.(syscall.Conn); ok {
		if raw, err := has.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { Own(int(fd)) })
		}
	}
}
