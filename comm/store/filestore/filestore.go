//go:build linux

package comm

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// A FileStore is a [Store] in a file that processes share, on one machine or on a file system that has locks between
// machines. It lives as long as somebody has it open: who opens it first finds it empty, whatever an earlier run has
// left there, and who closes it last removes the file. A process may be killed at any moment without harm to the
// others. Nothing is ever reclaimed while it is in use: a store takes 1 GiB of writes.
type FileStore struct {
	mem     *MemStore     // what the records say, as far as they have been read
	turn    chan struct{} // holds something while a goroutine uses log
	log     *fileLog
	watch   *fileWatch
	waiting atomic.Int64 // calls that need to know what others write
	running sync.WaitGroup
	once    sync.Once
}

// NewFileStore opens the store at path; it makes the file, not its directory. A file that is something else than a store
// is an error, and stays as it is. So are a file of another user, a symbolic link, and a path by way of a folder that belongs to
// another user (but root), or that others can write to and that has no sticky bit.
func NewFileStore(path string) (*FileStore, error) {
	log, err := openFileLog(path)
	if err != nil {
		return nil, err
	}
	watch, err := watchFile(log.file)
	if err != nil {
		return nil, errors.Join(err, log.leave())
	}
	return newFileStore(log, watch), nil
}

func newFileStore(log *fileLog, watch *fileWatch) *FileStore {
	s := &FileStore{mem: NewMemStore(), turn: make(chan struct{}, 1), log: log, watch: watch}
	s.running.Go(s.follow)
	return s
}

// Set implements [Store].
func (s *FileStore) Set(ctx context.Context, key string, value []byte) error {
	if err := checkStoreCall(ctx, "set", key, value); err != nil {
		return err
	}
	return s.update(ctx, "set", key, func(*storeState) (fileChange, error) {
		return fileChange{write: true, value: copyValue(value)}, nil
	})
}

// Get implements [Store].
func (s *FileStore) Get(ctx context.Context, key string) ([]byte, error) {
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	if err := s.catchUp(ctx, key); err != nil {
		return nil, err
	}
	return s.mem.Get(ctx, key)
}

// Add implements [Store].
func (s *FileStore) Add(ctx context.Context, key string, n int64) (sum int64, err error) {
	if err := checkStoreCall(ctx, "add", key); err != nil {
		return 0, err
	}
	err = s.update(ctx, "add", key, func(state *storeState) (_ fileChange, err error) {
		sum, err = state.sum(key, n)
		return fileChange{write: true, value: storeNumber(sum)}, err
	})
	return sum, err
}

// CompareAndSwap implements [Store].
func (s *FileStore) CompareAndSwap(ctx context.Context, key string, old, new []byte) (now []byte, err error) {
	if err := checkStoreCall(ctx, "compare and swap", key, old, new); err != nil {
		return nil, err
	}
	err = s.update(ctx, "compare and swap", key, func(state *storeState) (c fileChange, _ error) {
		now, c.write = state.swapped(key, old, copyValue(new))
		c.value = now
		return c, nil
	})
	return bytes.Clone(now), err
}

// Wait implements [Store].
func (s *FileStore) Wait(ctx context.Context, keys ...string) error {
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	if err := s.catchUp(ctx, keys...); err != nil {
		return err
	}
	return s.mem.Wait(ctx, keys...)
}

// Delete implements [Store].
func (s *FileStore) Delete(ctx context.Context, key string) (existed bool, err error) {
	if err := checkStoreCall(ctx, "delete", key); err != nil {
		return false, err
	}
	err = s.update(ctx, "delete", key, func(state *storeState) (fileChange, error) {
		_, existed = state.values[key]
		return fileChange{write: existed}, nil
	})
	return existed, err
}

// Close implements [Store]. Whoever closes last removes the file.
func (s *FileStore) Close() (err error) {
	s.once.Do(func() {
		_ = s.mem.Close() // ends what is pending
		s.watch.close()
		s.running.Wait()
		s.turn <- struct{}{} // and never gives it back
		err = s.log.leave()
	})
	return err
}

// A fileChange is what a call makes of the state: nothing, or a new value for its key, nil to delete it.
type fileChange struct {
	write bool
	value []byte
}

// update lets decide look at the newest state, and writes what it wants.
func (s *FileStore) update(ctx context.Context, op, key string, decide func(*storeState) (fileChange, error)) error {
	err := s.inTurn(ctx, unix.F_WRLCK, func() error {
		var c fileChange
		err := s.mem.locked(func() (err error) {
			c, err = decide(&s.mem.state)
			return err
		})
		if err != nil || !c.write {
			return err
		}
		if err := s.log.append(key, c.value); err != nil {
			return err
		}
		s.mem.apply(key, c.value)
		return nil
	})
	if endedBy(ctx, err) {
		return storeCallError(op, key, err)
	}
	return err
}

// catchUp reads what others have written before a call that waits for keys.
func (s *FileStore) catchUp(ctx context.Context, keys ...string) error {
	if err := checkStoreWait(ctx, keys...); err != nil {
		return err
	}
	s.watch.wake()
	err := s.inTurn(ctx, unix.F_RDLCK, func() error { return nil })
	if endedBy(ctx, err) {
		return &MissingKeysError{Keys: keys, Err: err}
	}
	return err
}

// inTurn runs f with mem up to date, while nobody writes to the file, nor reads it when typ is F_WRLCK.
func (s *FileStore) inTurn(ctx context.Context, typ int16, f func() error) error {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-s.mem.closed:
		return s.mem.failure()
	}
	defer func() { <-s.turn }()
	if err := s.log.lock(ctx, s.mem.closed, fileTurnLock, typ); err != nil {
		return err
	}
	defer s.log.unlock()
	if err := s.log.replay(s.mem.apply); err != nil {
		s.mem.fail(err)
	}
	if err := s.mem.failure(); err != nil {
		return err
	}
	return f()
}

// follow reads what others write, while somebody here waits for it.
func (s *FileStore) follow() {
	wanted := func() bool { return s.waiting.Load() > 0 }
	pause, seen := fileShortestPause, int64(0)
	for s.watch.next(wanted, pause) {
		if !wanted() {
			pause = fileShortestPause
			continue
		}
		var end int64
		err := s.inTurn(context.Background(), unix.F_RDLCK, func() error {
			end = s.log.end
			return nil
		})
		if err != nil {
			s.mem.fail(err) // those who wait must not wait for ever
			return
		}
		pause = min(2*pause, fileLongestPause)
		if end != seen {
			pause, seen = fileShortestPause, end
		}
	}
}
