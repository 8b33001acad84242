//go:build linux

package filestore

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// A store is opened directory by directory, from the root, and each directory is checked once it is open. So a file, a directory or a
// symbolic link that another user of this machine puts in the path is never mistaken for this user's own, whatever the kernel allows.

const (
	dirFlags  = unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fileFlags = unix.O_RDWR | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC // it may be no file

	maxLinks = 40 // the most symbolic links in a path, as in the kernel
)

// openFile opens the file at path and its directory. It makes the file if there is none.
func openFile(path string) (file, dir *os.File, err error) {
	whole, err := filepath.Abs(path)
	if err != nil {
		return nil, nil, err
	}
	parent, name := filepath.Split(whole)
	w := walk{owners: trustedOwners()}
	if err := w.to(parent); err != nil {
		return nil, nil, fmt.Errorf("file %s: %w", path, err)
	}
	fd, err := w.openFile(name)
	if err != nil {
		w.close()
		return nil, nil, err
	}
	return os.NewFile(uintptr(fd), path), os.NewFile(uintptr(w.fd), w.at), nil
}

// A walk follows a path, directory by directory.
type walk struct {
	fd     int    // of the directory that it has reached
	at     string // the path of that directory
	links  int    // symbolic links that it has followed
	owners owners
}

func (w *walk) close() { _ = unix.Close(w.fd) }

// enter makes fd the directory that w has reached, and checks it.
func (w *walk) enter(fd int, at string) error {
	w.close()
	w.fd, w.at = fd, at
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return &os.PathError{Op: "stat", Path: at, Err: err}
	}
	return w.owners.checkDir(&st, at)
}

// to walks to the directory at an absolute path.
func (w *walk) to(dir string) (err error) {
	w.fd = -1
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	for rest := []string{"/" + dir}; len(rest) > 0; {
		var more []string
		if more, err = w.step(rest[0]); err != nil {
			return err
		}
		rest = append(more, rest[1:]...)
	}
	return nil
}

// step walks to name. If name is a path or a symbolic link, it returns the elements that remain.
func (w *walk) step(name string) (more []string, err error) {
	if path, absolute := strings.CutPrefix(name, "/"); absolute {
		root, err := unix.Open("/", dirFlags, 0)
		if err != nil {
			return nil, &os.PathError{Op: "open", Path: "/", Err: err}
		}
		return strings.Split(path, "/"), w.enter(root, "/")
	}
	if name == "" || name == "." {
		return nil, nil
	}
	at := filepath.Join(w.at, name)
	fd, err := unix.Openat(w.fd, name, dirFlags, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: at, Err: err}
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && st.Mode&unix.S_IFMT != unix.S_IFLNK {
		return nil, w.enter(fd, at)
	}
	defer func() { _ = unix.Close(fd) }()
	if err == nil {
		w.links++
		err = w.owners.check(&st, at)
	}
	if err == nil && w.links > maxLinks {
		err = &os.PathError{Op: "open", Path: at, Err: unix.ELOOP}
	}
	if err != nil {
		return nil, err
	}
	target := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", target)
	if err != nil || n == len(target) {
		return nil, &os.PathError{Op: "readlink", Path: at, Err: cmp.Or[error](err, unix.ENAMETOOLONG)}
	}
	if target[0] == '/' {
		return []string{string(target[:n])}, nil
	}
	return strings.Split(string(target[:n]), "/"), nil
}

// openFile opens the file of that name in the directory.
func (w *walk) openFile(name string) (fd int, err error) {
	path := filepath.Join(w.at, name)
	for {
		fd, err = unix.Openat(w.fd, name, fileFlags, 0)
		if errors.Is(err, unix.ENOENT) {
			fd, err = unix.Openat(w.fd, name, fileFlags|unix.O_CREAT|unix.O_EXCL, 0o600)
		}
		if !errors.Is(err, unix.EEXIST) && !errors.Is(err, unix.EINTR) { // another process was faster
			break
		}
	}
	var st unix.Stat_t
	if err != nil {
		err = &os.PathError{Op: "open", Path: path, Err: err}
		if unix.Fstatat(w.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
			err = cmp.Or(checkFile(&st, path), err) // the first one says more
		}
		return -1, err
	}
	if err = os.NewSyscallError("fstat", unix.Fstat(fd, &st)); err == nil {
		err = checkFile(&st, path)
	}
	if err == nil {
		err = os.NewSyscallError("fcntl", unix.SetNonblock(fd, false))
	}
	if err != nil {
		_ = unix.Close(fd)
	}
	return fd, err
}
