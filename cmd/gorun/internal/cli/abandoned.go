package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Who kills all processes of a job at once, as Slurm does, leaves nobody to remove its temporary files. So gorun locks its directory as
// long as it lives, and removes at its end those directories of the same user whose locks nobody holds.

const (
	lockName  = "lock"
	sweepTime = time.Second // for the removal of what others have left: it goes on when the next gorun ends
)

// takeLock locks the directory until this process ends or removes the lock. A file system without locks does without.
func (s *scratch) takeLock() error {
	f, err := os.CreateTemp(s.dir, lockName+"-*") // under another name until it is locked
	if err != nil {
		return err
	}
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return errors.Join(f.Close(), os.Remove(f.Name()))
	}
	s.lock = f
	return os.Rename(f.Name(), filepath.Join(s.dir, lockName))
}

// sweep removes the directories that have been abandoned beside s, as far as it comes.
func (s *scratch) sweep() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		removeAbandoned(filepath.Dir(s.dir))
	}()
	select {
	case <-done:
	case <-time.After(sweepTime):
	}
}

func removeAbandoned(in string) {
	entries, err := os.ReadDir(in)
	if err != nil {
		return
	}
	for _, e := range entries {
		if dir := filepath.Join(in, e.Name()); e.IsDir() && strings.HasPrefix(e.Name(), scratchPrefix) && isAbandoned(dir, e) {
			_ = os.RemoveAll(dir) // or the next gorun does
		}
	}
}

// isAbandoned reports whether a directory of this user has a lock that nobody holds.
func isAbandoned(dir string, e fs.DirEntry) bool {
	info, err := e.Info()
	if err != nil {
		return false
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); !ok || int(owner.Uid) != os.Getuid() {
		return false
	}
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // it was only locked
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
