package scratch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// If all processes of a job are killed at once, as Slurm does, nobody is left to remove its temporary files. So gorun
// locks its directory as long as it lives, and removes at its end those directories of the same user and machine
// whose locks nobody holds. On many a shared file system, a machine does not see the locks of others. So the name of a
// lock says of which machine it is.

const (
	lockPrefix = "lock-"
	sweepTime  = time.Second // for the removal of what others have left: it goes on when the next gorun ends
)

// lockName is the name of a lock of this machine, until it boots again; empty if the machine cannot be told from
// others.
func lockName() string {
	boot, err := bootID()
	boot = strings.TrimSpace(boot)
	if err != nil || boot == "" || strings.ContainsRune(boot, filepath.Separator) {
		return ""
	}
	return lockPrefix + boot
}

// takeLock locks the directory until this process ends or removes the lock. A machine or a file system without locks
// does without.
func (s *Dir) takeLock() error {
	name := lockName()
	if name == "" {
		return nil
	}
	f, err := os.CreateTemp(s.Path, "new-"+lockPrefix+"*") // under another name until it is locked
	if err != nil {
		return err
	}
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return errors.Join(f.Close(), os.Remove(f.Name()))
	}
	s.lock = f
	s.lockPath = filepath.Join(s.Path, name)
	return os.Rename(f.Name(), s.lockPath)
}

// sweep removes the directories that have been abandoned beside s, as far as it comes.
func (s *Dir) sweep() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		removeAbandoned(filepath.Dir(s.Path))
	}()
	select {
	case <-done:
	case <-time.After(sweepTime):
	}
}

func removeAbandoned(in string) {
	entries, err := os.ReadDir(in)
	lock := lockName()
	if err != nil || lock == "" {
		return
	}
	for _, e := range entries {
		if dir := filepath.Join(in, e.Name()); e.IsDir() && strings.HasPrefix(e.Name(), prefix) && isAbandoned(dir, lock, e) {
			_ = removeLockLast(dir, lock) // or the next gorun does
		}
	}
}

// removeLockLast removes a directory, and its lock last: without a lock, nobody would finish a removal that was cut short.
func removeLockLast(dir, lock string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if e.Name() != lock {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	if err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// isAbandoned reports whether a directory of this user has a lock of this machine that nobody holds.
func isAbandoned(dir, lock string, e fs.DirEntry) bool {
	info, err := e.Info()
	if err != nil {
		return false
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); !ok || int(owner.Uid) != os.Getuid() {
		return false
	}
	f, err := os.OpenFile(filepath.Join(dir, lock), os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // it was only locked
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
