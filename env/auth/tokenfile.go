package auth

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// MaxToken is the greatest length of a token in bytes: it is passed in the environment of workers.
const MaxToken = 1024

// ReadTokenFile returns the token in a file. It refuses a file that other users can read.
func ReadTokenFile(name string) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", fmt.Errorf("cannot read the token: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	if err := checkPrivate(file); err != nil {
		return "", err
	}
	return readToken(file)
}

// readToken returns the contents of the file, without white space around them. If the token is too long, it returns enough of it to show
// that.
func readToken(file *os.File) (string, error) {
	text, err := io.ReadAll(io.LimitReader(file, MaxToken+64))
	if err != nil {
		return "", fmt.Errorf("cannot read the token: %w", err)
	}
	return string(bytes.TrimSpace(text)), nil
}

var errNotPrivate = errors.New("other users can read it, and so could join the job: run chmod 600 on it")

// checkPrivate refuses a file that other users can read, with two exceptions. The group may read a file that belongs to another
// user, who has shared it with the group, as Kubernetes does with fsGroup. And everybody may read a file in a read-only mount,
// where nobody can change the mode: this is how Kubernetes mounts secrets into containers, which have no other users.
func checkPrivate(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	public := fs.FileMode(0o007)
	if isOurs(info) {
		public = 0o077
	}
	if info.Mode().Perm()&public == 0 || !info.Mode().IsRegular() || isReadOnly(file) {
		return nil
	}
	return errNotPrivate
}

// CheckOwnDir refuses what is no directory, and a directory that belongs to another user or that others can write to.
func CheckOwnDir(path string) error {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is no directory", path)
	}
	return checkOwn(path, info)
}

// OpenOwn opens a file for reading. It refuses one that other users can read or write, or may have written.
func OpenOwn(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, fmt.Errorf("%s is a symbolic link", path)
	}
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = fmt.Errorf("%s is no regular file", path)
	default:
		err = checkOwn(path, info)
	}
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		err = fmt.Errorf("%s can be used by other users", path)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// checkOwn refuses what belongs to another user, or others can write to.
func checkOwn(path string, info fs.FileInfo) error {
	switch {
	case !isOurs(info):
		return fmt.Errorf("%s belongs to another user", path)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("%s can be changed by other users", path)
	}
	return nil
}

// isOurs reports whether a file belongs to the user of this process.
func isOurs(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
