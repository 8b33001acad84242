package filestore

import (
	"bytes"
	"context"
	"errors"
	"sync"

	"github.com/gorun/gorun/comm/store"
)

// A Store is one handle of a store in a directory. The store lives as long as a handle is open: the first one to open
// it finds it empty, whatever an earlier run has left there, and the last one to close it removes the directory. A
// process may be killed at any moment without harm to the others.
type Store struct {
	dir    *dir
	files  sync.RWMutex  // is held for reading while a call uses dir
	turn   chan struct{} // full while a goroutine writes: a mutex whose Lock can be cancelled
	closed chan struct{}
	once   sync.Once
}

// Open opens the store at path. It makes the directory, but not the one above it. It is an error if there is a file or
// a symbolic link, a directory of another user, one that others can write to, or one with other files. Then they stay
// as they are.
func Open(path string) (*Store, error) {
	d, err := openDir(path)
	if err != nil {
		return nil, err
	}
	return &Store{dir: d, turn: make(chan struct{}, 1), closed: make(chan struct{})}, nil
}

// Set implements [store.Store].
func (s *Store) Set(ctx context.Context, key string, value []byte) error {
	if err := store.CheckCall(ctx, "set", key, value); err != nil {
		return err
	}
	return s.update(ctx, "set", key, func([]byte, bool) (change, error) { return change{write: true, value: value}, nil })
}

// Get implements [store.Store].
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	if err := store.CheckWait(ctx, key); err != nil {
		return nil, err
	}
	return s.await(ctx, key)
}

// Add implements [store.Store].
func (s *Store) Add(ctx context.Context, key string, n int64) (sum int64, err error) {
	if err := store.CheckCall(ctx, "add", key); err != nil {
		return 0, err
	}
	err = s.update(ctx, "add", key, func(value []byte, exists bool) (_ change, err error) {
		if sum, err = store.Sum(value, exists, n); err != nil {
			return change{}, store.CallError("add", key, err)
		}
		return change{write: true, value: store.FormatNumber(sum)}, nil
	})
	return sum, err
}

// CompareAndSwap implements [store.Store].
func (s *Store) CompareAndSwap(ctx context.Context, key string, old, new []byte) (result []byte, err error) {
	if err := store.CheckCall(ctx, "compare and swap", key, old, new); err != nil {
		return nil, err
	}
	err = s.update(ctx, "compare and swap", key, func(value []byte, exists bool) (c change, _ error) {
		result, c.write = store.Swap(value, exists, old, new)
		c.value = result
		return c, nil
	})
	return bytes.Clone(result), err
}

// Wait implements [store.Store].
func (s *Store) Wait(ctx context.Context, keys ...string) error {
	if err := store.CheckWait(ctx, keys...); err != nil {
		return err
	}
	for i, key := range keys {
		if _, err := s.await(ctx, key); err != nil {
			missing, ok := errors.AsType[*store.MissingKeysError](err)
			if !ok {
				return err
			}
			for _, later := range keys[i+1:] { // it may be there
				if _, exists, err := s.read(later); err == nil && !exists {
					missing.Keys = append(missing.Keys, later)
				}
			}
			return missing
		}
	}
	return nil
}

// Delete implements [store.Store].
func (s *Store) Delete(ctx context.Context, key string) (existed bool, err error) {
	if err := store.CheckCall(ctx, "delete", key); err != nil {
		return false, err
	}
	err = s.update(ctx, "delete", key, func(_ []byte, exists bool) (change, error) {
		existed = exists
		return change{remove: exists}, nil
	})
	return existed, err
}

// Close implements [store.Store]. The last handle to be closed removes the directory.
func (s *Store) Close() (err error) {
	s.once.Do(func() {
		close(s.closed)
		s.files.Lock()
		defer s.files.Unlock()
		err = s.dir.leave()
	})
	return err
}

// A change is what a call does to its key.
type change struct {
	write  bool
	value  []byte
	remove bool
}

// begin begins to use the directory. It returns an error if the store is closed; else end must be called.
func (s *Store) begin() error {
	s.files.RLock()
	select {
	case <-s.closed:
		s.files.RUnlock()
		return store.ErrClosed
	default:
		return nil
	}
}

func (s *Store) end() { s.files.RUnlock() }

// update makes the change on which decide decides by what the key holds.
func (s *Store) update(ctx context.Context, op, key string, decide func(value []byte, exists bool) (change, error)) error {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return store.CallError(op, key, ctx.Err())
	case <-s.closed:
		return store.ErrClosed
	}
	defer func() { <-s.turn }()
	if err := s.begin(); err != nil {
		return err
	}
	defer s.end()
	if err := s.dir.lockWrites(ctx, s.closed); err != nil {
		if ctx.Err() != nil {
			return store.CallError(op, key, err)
		}
		return err
	}
	defer s.dir.unlockWrites()
	value, exists, err := s.dir.read(key)
	if err != nil {
		return err
	}
	c, err := decide(value, exists)
	switch {
	case err != nil:
		return err
	case c.write:
		return s.dir.write(key, c.value)
	case c.remove:
		return s.dir.remove(key)
	}
	return nil
}

func (s *Store) read(key string) (value []byte, exists bool, err error) {
	if err := s.begin(); err != nil {
		return nil, false, err
	}
	defer s.end()
	return s.dir.read(key)
}

// await waits until a key exists, and returns its value.
func (s *Store) await(ctx context.Context, key string) ([]byte, error) {
	for pause := shortestPause; ; {
		value, exists, err := s.read(key)
		if exists || err != nil {
			return value, err
		}
		if err := sleep(ctx, s.closed, &pause); errors.Is(err, store.ErrClosed) {
			return nil, err
		} else if err != nil {
			return nil, &store.MissingKeysError{Keys: []string{key}, Err: err}
		}
	}
}
