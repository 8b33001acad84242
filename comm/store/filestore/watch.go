//go:build linux

package filestore

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// A watcher that polls waits for a time between these before the file is read again.
const (
	shortestPause = 2 * time.Millisecond
	longestPause  = 100 * time.Millisecond
)

// A watcher reports when a file may have changed. It uses inotify. Inotify does not report what other machines write, so if they may write
// to the file, the watcher polls as well.
type watcher struct {
	events *os.File // of inotify, or without any
	poll   bool
}

func newWatcher(f *os.File) (*watcher, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return newPoller() // a user may have 128 inotify instances
	}
	// An unlinked file changes its attributes.
	if _, err = unix.InotifyAddWatch(fd, fmt.Sprintf("/proc/self/fd/%d", f.Fd()), unix.IN_MODIFY|unix.IN_ATTRIB); err != nil {
		_ = unix.Close(fd)
		return newPoller()
	}
	return &watcher{events: os.NewFile(uintptr(fd), "inotify"), poll: !isLocalFile(f)}, nil
}

// newPoller returns a watcher that only polls.
func newPoller() (*watcher, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("store: eventfd: %w", err)
	}
	return &watcher{events: os.NewFile(uintptr(fd), "eventfd"), poll: true}, nil
}

// isLocalFile reports whether f is on a kind of file system to which no other machine writes.
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

// next waits until the file may have changed. If it polls and wanted returns true, it waits no longer than pause. It
// returns false once the watcher is closed.
func (w *watcher) next(wanted func() bool, pause time.Duration) bool {
	// In this order no wake is lost: when wake is called, wanted already returns true.
	_ = w.events.SetReadDeadline(time.Time{})
	if w.poll && wanted() {
		_ = w.events.SetReadDeadline(time.Now().Add(pause))
	}
	var events [4096]byte // it only matters that there are any
	_, err := w.events.Read(events[:])
	return err == nil || errors.Is(err, os.ErrDeadlineExceeded)
}

// wake ends a next that was called while wanted returned false.
func (w *watcher) wake() {
	if w.poll {
		_ = w.events.SetReadDeadline(time.Now())
	}
}

func (w *watcher) close() { _ = w.events.Close() }
