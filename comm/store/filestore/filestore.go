//go:build linux

package filestore

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/comm/store"
	"github.com/gorun/gorun/comm/store/internal/kv"
)

// A Store is one handle of a store in a file. The store lives as long as a handle is open: the first one to open it finds
// it empty, whatever an earlier run has left there, and the last one to close it removes the file. A process may be killed
// at any moment without harm to the others. While the store is open it reclaims nothing: it has room for 1 GiB of writes.
type Store struct {
	values  *kv.Shared    // the values, according to the records that have been read
	busy    chan struct{} // full while a goroutine uses log: a mutex whose Lock can be cancelled
	log     *logFile
	watch   *watcher
	waiting atomic.Int64 // calls that need to know what others write
	running sync.WaitGroup
	once    sync.Once
}

// Open opens the store at path. It makes the file, but not its directory. It is an error if the file is something other
// than a store, belongs to another user or is a symbolic link, or if the way there leads through a directory of another
// user than root, or through one that others can write to and that has no sticky bit. Then the file stays as it is.
func Open(path string) (*Store, error) {
	log, err := openLog(path)
	if err != nil {
		return nil, err
	}
	watch, err := newWatcher(log.file)
	if err != nil {
		return nil, errors.Join(err, log.leave())
	}
	return newStore(log, watch), nil
}

func newStore(log *logFile, watch *watcher) *Store {
	s := &Store{values: kv.NewShared(), busy: make(chan struct{}, 1), log: log, watch: watch}
	s.running.Go(s.follow)
	return s
}

// Set implements [store.Store].
func (s *Store) Set(ctx context.Context, key string, value []byte) error {
	if err := store.CheckCall(ctx, "set", key, value); err != nil {
		return err
	}
	return s.update(ctx, "set", key, func(*kv.State) (change, error) {
		return change{write: true, value: kv.Copy(value)}, nil
	})
}

// Get implements [store.Store].
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	if err := s.catchUp(ctx, key); err != nil {
		return nil, err
	}
	return s.values.Get(ctx, key)
}

// Add implements [store.Store].
func (s *Store) Add(ctx context.Context, key string, n int64) (sum int64, err error) {
	if err := store.CheckCall(ctx, "add", key); err != nil {
		return 0, err
	}
	err = s.update(ctx, "add", key, func(state *kv.State) (_ change, err error) {
		sum, err = state.Sum(key, n)
		return change{write: true, value: store.FormatNumber(sum)}, err
	})
	return sum, err
}

// CompareAndSwap implements [store.Store].
func (s *Store) CompareAndSwap(ctx context.Context, key string, old, new []byte) (result []byte, err error) {
	if err := store.CheckCall(ctx, "compare and swap", key, old, new); err != nil {
		return nil, err
	}
	err = s.update(ctx, "compare and swap", key, func(state *kv.State) (c change, _ error) {
		result, c.write = state.Swap(key, old, kv.Copy(new))
		c.value = result
		return c, nil
	})
	return bytes.Clone(result), err
}

// Wait implements [store.Store].
func (s *Store) Wait(ctx context.Context, keys ...string) error {
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	if err := s.catchUp(ctx, keys...); err != nil {
		return err
	}
	return s.values.Wait(ctx, keys...)
}

// Delete implements [store.Store].
func (s *Store) Delete(ctx context.Context, key string) (existed bool, err error) {
	if err := store.CheckCall(ctx, "delete", key); err != nil {
		return false, err
	}
	err = s.update(ctx, "delete", key, func(state *kv.State) (change, error) {
		_, existed = state.Get(key)
		return change{write: existed}, nil
	})
	return existed, err
}

// Close implements [store.Store]. The last handle to be closed removes the file.
func (s *Store) Close() (err error) {
	s.once.Do(func() {
		s.values.Fail(store.ErrClosed) // ends pending calls
		s.watch.close()
		s.running.Wait()
		s.busy <- struct{}{} // for ever
		err = s.log.leave()
	})
	return err
}

// A change is what a call does to its key: nothing, or a new value. The value nil deletes the key.
type change struct {
	write bool
	value []byte
}

// update calls decide with the newest state, and writes the change that it returns.
func (s *Store) update(ctx context.Context, op, key string, decide func(*kv.State) (change, error)) error {
	err := s.locked(ctx, unix.F_WRLCK, func() error {
		var c change
		err := s.values.Do(func(state *kv.State) (err error) {
			c, err = decide(state)
			return err
		})
		if err != nil || !c.write {
			return err
		}
		if err := s.log.append(key, c.value); err != nil {
			return err
		}
		s.apply(key, c.value)
		return nil
	})
	if kv.Ended(ctx, err) {
		return store.CallError(op, key, err)
	}
	return err
}

// apply makes the change of a record. A closed store ignores it.
func (s *Store) apply(key string, value []byte) {
	_ = s.values.Do(func(state *kv.State) error {
		if value == nil {
			state.Delete(key)
		} else {
			state.Set(key, value)
		}
		return nil
	})
}

// catchUp reads what others have written, before a call waits for keys.
func (s *Store) catchUp(ctx context.Context, keys ...string) error {
	if err := store.CheckWait(ctx, keys...); err != nil {
		return err
	}
	s.watch.wake()
	err := s.locked(ctx, unix.F_RDLCK, func() error { return nil })
	if kv.Ended(ctx, err) {
		return &store.MissingKeysError{Keys: keys, Err: err}
	}
	return err
}

// locked calls f with the values up to date, while nobody writes to the file. If typ is F_WRLCK, nobody reads it either.
func (s *Store) locked(ctx context.Context, typ int16, f func() error) error {
	select {
	case s.busy <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-s.values.Failed():
		return s.values.Err()
	}
	defer func() { <-s.busy }()
	if err := s.log.lock(ctx, s.values.Failed(), accessLock, typ); err != nil {
		return err
	}
	defer s.log.unlock()
	if err := s.log.replay(s.apply); err != nil {
		s.values.Fail(err)
	}
	if err := s.values.Err(); err != nil {
		return err
	}
	return f()
}

// follow reads what others write while a call here waits for it.
func (s *Store) follow() {
	wanted := func() bool { return s.waiting.Load() > 0 }
	pause, seen := shortestPause, int64(0)
	for s.watch.next(wanted, pause) {
		if !wanted() {
			pause = shortestPause
			continue
		}
		var end int64
		err := s.locked(context.Background(), unix.F_RDLCK, func() error {
			end = s.log.end
			return nil
		})
		if err != nil {
			s.values.Fail(err) // calls must not wait for ever
			return
		}
		pause = min(2*pause, longestPause)
		if end != seen {
			pause, seen = shortestPause, end
		}
	}
}
