//go:build linux

package comm

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// A store is opened folder by folder, from the root on, and each is looked at once it is open. So nothing that another user of
// the machine puts in the way, be it a file, a folder or a symbolic link, is taken for one's own, whatever the kernel allows.

const (
	folderFlags = unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC
	storeFlags  = unix.O_RDWR | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC // it may be no file

	mostLinks = 40 // on the way, as the kernel has it
)

// openStoreFile opens the file at path, which it makes if there is none, and the folder in which that is.
func openStoreFile(path string) (file, folder *os.File, err error) {
	whole, err := filepath.Abs(path)
	if err != nil {
		return nil, nil, err
	}
	dir, name := filepath.Split(whole)
	w := fileWalk{owners: folderOwners()}
	if err := w.to(dir); err != nil {
		return nil, nil, fmt.Errorf("file %s: %w", path, err)
	}
	fd, err := w.openFile(name)
	if err != nil {
		w.close()
		return nil, nil, err
	}
	return os.NewFile(uintptr(fd), path), os.NewFile(uintptr(w.fd), w.at), nil
}

// A fileWalk is on its way to a file.
type fileWalk struct {
	fd     int    // of the folder that it has come to
	at     string // the path of that
	links  int    // that it has followed
	owners owners
}

func (w *fileWalk) close() { _ = unix.Close(w.fd) }

// enter makes fd, at that path, the folder that w has come to.
func (w *fileWalk) enter(fd int, at string) error {
	w.close()
	w.fd, w.at = fd, at
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return &os.PathError{Op: "stat", Path: at, Err: err}
	}
	return w.owners.checkFolder(&st, at)
}

// to goes to the folder at dir, an absolute path.
func (w *fileWalk) to(dir string) (err error) {
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

// step goes on to name, and returns what is still to go there: the parts of a path, or of what a symbolic link says.
func (w *fileWalk) step(name string) (more []string, err error) {
	if path, absolute := strings.CutPrefix(name, "/"); absolute {
		root, err := unix.Open("/", folderFlags, 0)
		if err != nil {
			return nil, &os.PathError{Op: "open", Path: "/", Err: err}
		}
		return strings.Split(path, "/"), w.enter(root, "/")
	}
	if name == "" || name == "." {
		return nil, nil
	}
	at := filepath.Join(w.at, name)
	fd, err := unix.Openat(w.fd, name, folderFlags, 0)
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
	if err == nil && w.links > mostLinks {
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

// openFile opens the file of that name in the folder.
func (w *fileWalk) openFile(name string) (fd int, err error) {
	path := filepath.Join(w.at, name)
	for {
		fd, err = unix.Openat(w.fd, name, storeFlags, 0)
		if errors.Is(err, unix.ENOENT) {
			fd, err = unix.Openat(w.fd, name, storeFlags|unix.O_CREAT|unix.O_EXCL, 0o600)
		}
		if !errors.Is(err, unix.EEXIST) && !errors.Is(err, unix.EINTR) { // somebody was faster
			break
		}
	}
	var st unix.Stat_t
	if err != nil {
		err = &os.PathError{Op: "open", Path: path, Err: err}
		if unix.Fstatat(w.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
			err = cmp.Or(checkFile(&st, path), err) // which says more
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
