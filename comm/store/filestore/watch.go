//go:build linux

package comm

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// How long fileWatch lets pass before the file is looked at again, where the kernel does not tell of changes.
const (
	fileShortestPause = 2 * time.Millisecond
	fileLongestPause  = 100 * time.Millisecond
)

// A fileWatch tells when a file may have changed: by inotify, and where that does not hear of what other machines
// write, also from time to time.
type fileWatch struct {
	events *os.File // of inotify, or one that never has any
	poll   bool
}

// watchFile watches f.
func watchFile(f *os.File) (*fileWatch, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return deafFileWatch() // a user may have 128 inotify instances
	}
	// An unlinked file changes its attributes.
	if _, err = unix.InotifyAddWatch(fd, fmt.Sprintf("/proc/self/fd/%d", f.Fd()), unix.IN_MODIFY|unix.IN_ATTRIB); err != nil {
		_ = unix.Close(fd)
		return deafFileWatch()
	}
	return &fileWatch{events: os.NewFile(uintptr(fd), "inotify"), poll: !isLocalFile(f)}, nil
}

// deafFileWatch knows of no events.
func deafFileWatch() (*fileWatch, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("store: eventfd: %w", err)
	}
	return &fileWatch{events: os.NewFile(uintptr(fd), "eventfd"), poll: true}, nil
}

// isLocalFile reports whether f is on a file system that no other machine writes to. Those not known are not.
func isLocalFile(f *os.File) bool {
	var st unix.Statfs_t
	if unix.Fstatfs(int(f.Fd()), &st) != nil {
		return false
	}
	switch st.Type {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC,
		unix.TMPFS_MAGIC, unix.RAMFS_MAGIC, unix.OVERLAYFS_SUPER_MAGIC:
		return true
	}
	return false
}

// next waits until the file may have changed. When it has to poll, and wanted says that somebody cares, it waits no
// longer than pause. It returns false once the watch is closed.
func (w *fileWatch) next(wanted func() bool, pause time.Duration) bool {
	// In this order, a wake that comes in between is not lost: whoever calls it is wanted already.
	_ = w.events.SetReadDeadline(time.Time{})
	if w.poll && wanted() {
		_ = w.events.SetReadDeadline(time.Now().Add(pause))
	}
	var events [4096]byte // their contents say no more than that they are there
	_, err := w.events.Read(events[:])
	return err == nil || errors.Is(err, os.ErrDeadlineExceeded)
}

// wake ends a next that does not know yet that it is wanted.
func (w *fileWatch) wake() {
	if w.poll {
		_ = w.events.SetReadDeadline(time.Now())
	}
}

func (w *fileWatch) close() { _ = w.events.Close() }
