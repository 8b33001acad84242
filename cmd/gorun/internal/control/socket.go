package control

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gorun/gorun/env/auth"
)

// The directories of sockets, of which an agent takes the first that it can. People may look for a job in another environment than that of
// the job, so they look into all.
func directories() (list []string) {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) && checkOwn(dir) == nil {
		list = append(list, filepath.Join(dir, "gorun"))
	}
	own := strconv.Itoa(os.Geteuid())
	if dir := filepath.Join("/run", "user", own); len(list) == 0 && checkOwn(dir) == nil {
		list = append(list, filepath.Join(dir, "gorun"))
	}
	return append(list, filepath.Join("/tmp", "gorun-"+own, "jobs"))
}

// checkOwn returns why a directory cannot be trusted: it must belong to this user, and nobody else may change it.
func checkOwn(dir string) error {
	err := auth.CheckOwnDir(dir)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return fmt.Errorf("%w: have it removed, or set XDG_RUNTIME_DIR to a directory of yours, for jobs and for the commands about them", err)
}

// prepare creates a directory that only this user can enter, and the one above it.
func prepare(dir string) error {
	for _, path := range []string{filepath.Dir(dir), dir} {
		if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := checkOwn(path); err != nil {
			return err
		}
	}
	return nil
}

const (
	suffix  = ".sock"
	maxName = 40 // bytes of a job's name in that of a socket: the path of a socket may have 107
)

// fileName names a socket or a record: the pid of its process, and the job.
func fileName(pid int, job, suffix string) string {
	safe := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.' {
			return r
		}
		return '_'
	}, job)
	return strconv.Itoa(pid) + "-" + safe[:min(len(safe), maxName)] + suffix
}

// listen listens in the first directory that can be used. remove removes the socket's file.
func listen(job string) (l *net.UnixListener, remove func(), err error) {
	var errs []error
	for _, dir := range directories() {
		if err := prepare(dir); err != nil {
			errs = append(errs, err)
			continue
		}
		path := filepath.Join(dir, fileName(os.Getpid(), job, suffix))
		if l, err = listenAt(path); err == nil {
			return l, func() { _ = os.Remove(path) }, nil // it may have been removed
		}
		errs = append(errs, err)
	}
	return nil, nil, errors.Join(errs...)
}

// listenAt listens at path. The socket has another name until it listens, so that nobody takes it for one of an agent that has ended.
func listenAt(path string) (*net.UnixListener, error) {
	first := filepath.Join(filepath.Dir(path), "."+filepath.Base(path))
	_ = os.Remove(first) // of an agent that had the same pid
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: first, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	if err := os.Rename(first, path); err != nil {
		return nil, errors.Join(err, l.Close(), os.Remove(first))
	}
	return l, nil
}

// Sockets returns the sockets of this user's agents on this machine. Some may have ended. The error says why agents cannot have sockets
// here.
func Sockets() ([]string, error) { return filesIn(directories(), suffix) }

// filesIn returns the files in directories that fileName has named, with this suffix. The error says why none of the directories can be used.
func filesIn(dirs []string, suffix string) (list []string, err error) {
	unusable := 0
	for _, dir := range dirs {
		entries, problem := read(dir)
		if problem != nil {
			unusable++
			err = cmp.Or(err, problem)
		}
		for _, e := range entries {
			if _, named := PidIn(e.Name()); named && strings.HasSuffix(e.Name(), suffix) {
				list = append(list, filepath.Join(dir, e.Name()))
			}
		}
	}
	if unusable < len(dirs) { // agents use the others
		err = nil
	}
	slices.Sort(list)
	return slices.Compact(list), err
}

// read reads a directory that prepare may have created.
func read(dir string) ([]fs.DirEntry, error) {
	for _, path := range []string{filepath.Dir(dir), dir} {
		if err := checkOwn(path); errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
	}
	return os.ReadDir(dir)
}

// MayBeOf reports whether the socket or the record at path may be that of a job. Its name has only the first bytes of the job's name, so other
// jobs may have the same.
func MayBeOf(path, job string) bool {
	pid, named := PidIn(path)
	return named && filepath.Base(path) == fileName(pid, job, filepath.Ext(path))
}

// PidIn returns the pid in the name of a socket or a record; false: it is another file.
func PidIn(path string) (pid int, named bool) {
	text, _, found := strings.Cut(filepath.Base(path), "-")
	pid, err := strconv.Atoi(text)
	return pid, found && err == nil
}

// removeDead removes the sockets of agents that have ended. It asks only those whose process is not to be seen: it may be in another
// container.
func removeDead() {
	paths, _ := Sockets() // where agents cannot have any, none is left
	for _, path := range paths {
		if pid, _ := PidIn(path); errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			RemoveIfDead(path)
		}
	}
}

const connectTimeout = time.Second

// RemoveIfDead removes a socket if its agent has ended.
func RemoveIfDead(path string) (dead bool) {
	conn, err := net.DialTimeout("unix", path, connectTimeout)
	if err == nil {
		_ = conn.Close()
		return false
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return errors.Is(err, fs.ErrNotExist)
	}
	_ = os.Remove(path) // somebody else may have removed it
	return true
}
