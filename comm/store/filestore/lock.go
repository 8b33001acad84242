//go:build linux

package filestore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/comm/store"
	"github.com/gorun/gorun/comm/store/internal/kv"
)

// The locks are on bytes beyond the end of every file. They belong to the open file, not to the process, so that two
// handles in one process exclude each other like two processes. When a process is killed, the kernel releases its locks.
const (
	accessLock = 1<<62 + iota // held while reading (shared) or writing
	openLock                  // held, shared, by every open store
)

const (
	// openLimit is how long Open waits for the access lock, closeLimit how long Close does.
	openLimit  = 10 * time.Second
	closeLimit = time.Second

	firstTry   = 50 * time.Microsecond
	longestTry = 10 * time.Millisecond
)

var errRemoved = errors.New("the file was removed by the last handle to be closed")

// openLog opens the file at path and marks it as open.
func openLog(path string) (*logFile, error) {
	for {
		file, dir, err := openFile(path)
		if err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
		l := &logFile{file: file, dir: dir, path: path}
		err = l.join()
		if err == nil {
			return l, nil
		}
		_ = l.close()
		if !errors.Is(err, errRemoved) {
			return nil, err
		}
	}
}

// join marks the file as open, and empties it if no other handle is open.
func (l *logFile) join() error {
	ctx, cancel := context.WithTimeout(context.Background(), openLimit)
	defer cancel()
	if err := l.lock(ctx, nil, accessLock, unix.F_WRLCK); err != nil {
		if kv.Ended(ctx, err) {
			return fmt.Errorf("store: file %s is locked by another process for more than %v", l.path, openLimit)
		}
		return err
	}
	defer l.unlock()
	if linked, err := l.isLinked(); err != nil {
		return err
	} else if !linked {
		return errRemoved
	}
	if err := l.checkMagic(); err != nil {
		return err
	}
	first, err := l.tryLock(openLock, unix.F_WRLCK)
	if err != nil {
		return err
	}
	if first {
		if err := l.reset(); err != nil { // the disk may be full
			l.remove()
			return err
		}
	}
	return l.lock(ctx, nil, openLock, unix.F_RDLCK)
}

// isLinked reports whether the file still has its name in the directory.
func (l *logFile) isLinked() (bool, error) {
	var open, named unix.Stat_t
	if err := unix.Fstat(int(l.file.Fd()), &open); err != nil {
		return false, fmt.Errorf("store: %s: %w", l.path, err)
	}
	err := unix.Fstatat(int(l.dir.Fd()), filepath.Base(l.path), &named, unix.AT_SYMLINK_NOFOLLOW)
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return false, fmt.Errorf("store: %s: %w", l.path, err)
	}
	return err == nil && open.Dev == named.Dev && open.Ino == named.Ino, nil
}

// leave closes the file, and removes it if no other handle is open. If another process holds the access lock and is
// stopped, the file stays. The next one to open it finds that no handle is open, and empties it.
func (l *logFile) leave() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	if l.lock(ctx, nil, accessLock, unix.F_WRLCK) == nil {
		last, _ := l.tryLock(openLock, unix.F_WRLCK)
		if linked, _ := l.isLinked(); last && linked {
			l.remove()
		}
	}
	if err := l.close(); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// remove removes the file. It may fail: the next handle to open the file empties it.
func (l *logFile) remove() { _ = unix.Unlinkat(int(l.dir.Fd()), filepath.Base(l.path), 0) }

// close closes the file and its directory. The kernel releases the locks.
func (l *logFile) close() error { return errors.Join(l.file.Close(), l.dir.Close()) }

// lock locks byte at of the file; typ is F_RDLCK or F_WRLCK. It tries again until ctx ends or stop is closed, because
// neither could end a wait in the kernel.
func (l *logFile) lock(ctx context.Context, stop <-chan struct{}, at int64, typ int16) error {
	for pause := firstTry; ; pause = min(2*pause, longestTry) {
		ok, err := l.tryLock(at, typ)
		if ok || err != nil {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		case <-stop:
			return store.ErrClosed
		}
	}
}

// tryLock reports whether it got the lock. F_UNLCK releases it.
func (l *logFile) tryLock(at int64, typ int16) (bool, error) {
	err := unix.FcntlFlock(l.file.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: typ, Whence: io.SeekStart, Start: at, Len: 1})
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EACCES), errors.Is(err, unix.EINTR):
		return false, nil
	}
	return false, fmt.Errorf("store: file %s cannot be locked: %w", l.path, err)
}

// unlock releases the access lock. That cannot fail.
func (l *logFile) unlock() { _, _ = l.tryLock(accessLock, unix.F_UNLCK) }
