package filestore

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/gorun/gorun/comm/store"
)

// A Store is one handle of a store in a directory. The store lives as long as a handle is open: the first one to open
// it finds it empty, whatever an earlier run has left there, and the last one to close it removes the directory. A
// process may be killed at any moment without harm to the others.
type Store struct {
	dir    *dir
	turn   chan struct{} // full while a goroutine writes: a mutex whose Lock can be cancelled
	closed chan struct{}
	once   sync.Once
}

// Open opens the store at path. It makes the directory, but not the one above it. It is an error if there is a file or
// a symbolic link, a directory of another user, one that others can write to, or one with other files. Then they stay
// as they are.
func Open(path string) (*Store, error) {
	d, err := openDir(path)
	for errors.Is(err, errRemoved) {
		d, err = openDir(path)
	}
	if err != nil {
		return nil, err
	}
	return &Store{dir: d, turn: make(chan struct{}, 1), closed: make(chan struct{})}, nil
}

// Set implements [store.Store].
func (s *Store) Set(ctx context.Context, key string, value []byte) error {
	if err := s.lock(ctx, "set", key, value); err != nil {
		return err
	}
	defer s.unlock()
	return s.dir.write(key, value)
}

// Add implements [store.Store].
func (s *Store) Add(ctx context.Context, key string, n int64) (int64, error) {
	if err := s.lock(ctx, "add", key); err != nil {
		return 0, err
	}
	defer s.unlock()
	value, exists, err := s.dir.read(key)
	if err != nil {
		return 0, err
	}
	sum, err := store.Sum(value, exists, n)
	if err != nil {
		return 0, store.CallError("add", key, err)
	}
	return sum, s.dir.write(key, store.FormatNumber(sum))
}

// CompareAndSwap implements [store.Store].
func (s *Store) CompareAndSwap(ctx context.Context, key string, old, new []byte) ([]byte, error) {
	if err := s.lock(ctx, "compare and swap", key, old, new); err != nil {
		return nil, err
	}
	defer s.unlock()
	value, exists, err := s.dir.read(key)
	if err != nil {
		return nil, err
	}
	result, write := store.Swap(value, exists, old, new)
	if write {
		err = s.dir.write(key, result)
	}
	return bytes.Clone(result), err
}

// Delete implements [store.Store].
func (s *Store) Delete(ctx context.Context, key string) (existed bool, err error) {
	if err := s.lock(ctx, "delete", key); err != nil {
		return false, err
	}
	defer s.unlock()
	return s.dir.remove(key)
}

// Get implements [store.Store].
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) { return s.await(ctx, key) }

// Wait implements [store.Store].
func (s *Store) Wait(ctx context.Context, keys ...string) error {
	_, err := s.await(ctx, keys...)
	return err
}

// Close implements [store.Store]. The last handle to be closed removes the directory.
func (s *Store) Close() (err error) {
	s.once.Do(func() {
		close(s.closed)
		s.turn <- struct{}{} // stays, for no call uses the directory any more
		err = s.dir.leave()
	})
	return err
}

// lock begins a call of op that changes what key holds: it checks the arguments, and waits until nobody else writes.
func (s *Store) lock(ctx context.Context, op, key string, values ...[]byte) error {
	if err := store.CheckCall(ctx, op, key, values...); err != nil {
		return err
	}
	select {
	case <-s.closed:
		return store.ErrClosed
	case <-ctx.Done():
		return store.CallError(op, key, ctx.Err())
	case s.turn <- struct{}{}:
	}
	for pause := shortestPause; ; {
		locked, err := s.dir.tryLock()
		if locked {
			return nil
		}
		if err == nil {
			err = s.sleep(ctx, &pause)
		}
		if err != nil {
			<-s.turn
			if ctx.Err() != nil {
				return store.CallError(op, key, err)
			}
			return err
		}
	}
}

func (s *Store) unlock() {
	s.dir.unlock()
	<-s.turn
}

// await waits until all keys exist, and returns the value of one of them.
func (s *Store) await(ctx context.Context, keys ...string) (value []byte, err error) {
	if err := store.CheckWait(ctx, keys...); err != nil {
		return nil, err
	}
	missing := slices.Clone(keys)
	for pause := shortestPause; ; {
		missing = slices.DeleteFunc(missing, func(key string) (exists bool) {
			if err == nil {
				value, exists, err = s.dir.read(key)
			}
			return exists
		})
		if isClosed(s.closed) {
			return nil, store.ErrClosed
		}
		if err != nil || len(missing) == 0 {
			return value, err
		}
		if err := s.sleep(ctx, &pause); err != nil {
			if errors.Is(err, store.ErrClosed) {
				return nil, err
			}
			return nil, &store.MissingKeysError{Keys: missing, Err: err}
		}
	}
}

const shortestPause, longestPause = 100 * time.Microsecond, 10 * time.Millisecond

// sleep sleeps for a pause, and makes it longer for the next time.
func (s *Store) sleep(ctx context.Context, pause *time.Duration) error {
	again := time.NewTimer(*pause)
	defer again.Stop()
	*pause = min(2**pause, longestPause)
	select {
	case <-again.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closed:
		return store.ErrClosed
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
