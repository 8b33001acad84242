//go:build linux

package comm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// The locks are on bytes that no file has, so that they are in nobody's way. They belong to the open file, not to the
// process: two handles in one process exclude each other like two processes. The kernel gives back those of a process
// that is killed.
const (
	fileTurnLock = 1<<62 + iota // held while reading (shared) or writing
	fileUseLock                 // held shared by every open store
)

const (
	// fileJoinLimit is how long NewFileStore waits for its turn, fileLeaveLimit how long Close does.
	fileJoinLimit  = 10 * time.Second
	fileLeaveLimit = time.Second

	fileFirstTry   = 50 * time.Microsecond
	fileLongestTry = 10 * time.Millisecond
)

var errFileReplaced = errors.New("the file was removed by the last who had it open")

// openFileLog opens the file at path and marks it as in use.
func openFileLog(path string) (*fileLog, error) {
	for {
		file, folder, err := openStoreFile(path)
		if err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
		l := &fileLog{file: file, folder: folder, path: path}
		err = l.join()
		if err == nil {
			return l, nil
		}
		_ = l.close()
		if !errors.Is(err, errFileReplaced) {
			return nil, err
		}
	}
}

// join marks the file as in use, and empties it if nobody else uses it.
func (l *fileLog) join() error {
	ctx, cancel := context.WithTimeout(context.Background(), fileJoinLimit)
	defer cancel()
	if err := l.lock(ctx, nil, fileTurnLock, unix.F_WRLCK); err != nil {
		if endedBy(ctx, err) {
			return fmt.Errorf("store: file %s is locked by another process for more than %v", l.path, fileJoinLimit)
		}
		return err
	}
	defer l.unlock()
	if there, err := l.isThere(); err != nil {
		return err
	} else if !there {
		return errFileReplaced
	}
	if err := l.recognise(); err != nil {
		return err
	}
	first, err := l.tryLock(fileUseLock, unix.F_WRLCK)
	if err != nil {
		return err
	}
	if first {
		if err := l.start(); err != nil {
			return err
		}
	}
	return l.lock(ctx, nil, fileUseLock, unix.F_RDLCK)
}

// isThere reports whether the file is still the one of its name in the folder.
func (l *fileLog) isThere() (bool, error) {
	var open, named unix.Stat_t
	if err := unix.Fstat(int(l.file.Fd()), &open); err != nil {
		return false, fmt.Errorf("store: %s: %w", l.path, err)
	}
	err := unix.Fstatat(int(l.folder.Fd()), filepath.Base(l.path), &named, unix.AT_SYMLINK_NOFOLLOW)
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return false, fmt.Errorf("store: %s: %w", l.path, err)
	}
	return err == nil && open.Dev == named.Dev && open.Ino == named.Ino, nil
}

// leave closes the file, and removes it if nobody else uses it. If another process is stopped in its turn, the file stays:
// the next who opens it finds that nobody uses it.
func (l *fileLog) leave() error {
	ctx, cancel := context.WithTimeout(context.Background(), fileLeaveLimit)
	defer cancel()
	if l.lock(ctx, nil, fileTurnLock, unix.F_WRLCK) == nil {
		last, _ := l.tryLock(fileUseLock, unix.F_WRLCK)
		if there, _ := l.isThere(); last && there {
			_ = unix.Unlinkat(int(l.folder.Fd()), filepath.Base(l.path), 0)
		}
	}
	if err := l.close(); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

func (l *fileLog) close() error { return errors.Join(l.file.Close(), l.folder.Close()) }

// lock takes byte at of the file with typ F_RDLCK or F_WRLCK, or gives it back with F_UNLCK. It tries until ctx ends or
// stop is closed, since the kernel's own wait could not be ended by either.
func (l *fileLog) lock(ctx context.Context, stop <-chan struct{}, at int64, typ int16) error {
	for pause := fileFirstTry; ; pause = min(2*pause, fileLongestTry) {
		ok, err := l.tryLock(at, typ)
		if ok || err != nil {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		case <-stop:
			return ErrStoreClosed
		}
	}
}

// tryLock reports whether the lock was free.
func (l *fileLog) tryLock(at int64, typ int16) (bool, error) {
	err := unix.FcntlFlock(l.file.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: typ, Whence: io.SeekStart, Start: at, Len: 1})
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EACCES), errors.Is(err, unix.EINTR):
		return false, nil
	}
	return false, fmt.Errorf("store: file %s cannot be locked: %w", l.path, err)
}

func (l *fileLog) unlock() { _, _ = l.tryLock(fileTurnLock, unix.F_UNLCK) } // cannot fail: what is not held is not given back
