//go:build linux

package filestore

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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

// owners are the users that may own the directories on the way to a store.
type owners struct {
	known   []uint32
	unknown uint32 // stands for all users that do not exist in this user namespace, possibly root among them
	foreign bool   // there are such users
	shared  bool   // other users may create files in the directory that was checked last
}

// trustedOwners returns root and this user.
func trustedOwners() owners {
	o := owners{known: []uint32{0, uint32(os.Geteuid())}}
	users, err := os.ReadFile("/proc/self/uid_map")
	if err != nil || slices.Equal(strings.Fields(string(users)), []string{"0", "0", "4294967295"}) {
		return o
	}
	text, err := os.ReadFile("/proc/sys/kernel/overflowuid")
	if uid, parseErr := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 32); err == nil && parseErr == nil {
		o.unknown, o.foreign = uint32(uid), true
	}
	return o
}

// check refuses what another user owns. It takes an unknown user for root if no other user could have created the file.
func (o *owners) check(st *unix.Stat_t, path string) error {
	if slices.Contains(o.known, st.Uid) || o.foreign && st.Uid == o.unknown && !o.shared {
		return nil
	}
	return fmt.Errorf("%s belongs to user %d, who could put another file in place of the store's: choose a folder of your own", path, st.Uid)
}

// checkDir refuses a directory of another user, and one in which others may replace files that they do not own.
func (o *owners) checkDir(st *unix.Stat_t, path string) error {
	if err := o.check(st, path); err != nil {
		return err
	}
	writers := otherWriters(st)
	o.shared = writers != ""
	if writers != "" && st.Mode&unix.S_ISVTX == 0 {
		return fmt.Errorf("folder %s can be written by %s, and has no sticky bit: choose another, or chmod it", path, writers)
	}
	return nil
}

// otherWriters returns who else may write to a file or directory. It is empty if nobody may.
func otherWriters(st *unix.Stat_t) string {
	groups, _ := os.Getgroups()
	switch {
	case st.Mode&0o002 != 0:
		return "everybody on this machine"
	case st.Mode&0o020 != 0 && st.Gid != 0 && int(st.Gid) != os.Getegid() && !slices.Contains(groups, int(st.Gid)):
		return fmt.Sprintf("group %d, of which this user is none,", st.Gid)
	}
	return ""
}

// checkFile refuses a file that is not a regular file of this user, has several names, or can be written by others.
func checkFile(st *unix.Stat_t, path string) error {
	switch writers := otherWriters(st); {
	case st.Mode&unix.S_IFMT == unix.S_IFLNK:
		return fmt.Errorf("%s is a symbolic link: name the file itself", path)
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return fmt.Errorf("%s is not a regular file", path)
	case int(st.Uid) != os.Geteuid():
		return fmt.Errorf("file %s belongs to user %d: remove it, or choose another name", path, st.Uid)
	case st.Nlink > 1:
		return fmt.Errorf("file %s has %d names: choose another", path, st.Nlink)
	case writers != "":
		return fmt.Errorf("file %s can be written by %s: remove it, or chmod go-w", path, writers)
	}
	return nil
}
