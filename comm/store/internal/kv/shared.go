package comm

import (
	"bytes"
	"context"
	"errors"
	"sync"
)

// A MemStore is a [Store] inside this process, for ranks that are goroutines.
type MemStore struct {
	mu     sync.Mutex
	state  storeState
	err    error         // why the store is closed
	closed chan struct{} // closed when err is set
}

// NewMemStore returns an empty store. Everybody who shares it shares its Close.
func NewMemStore() *MemStore {
	return &MemStore{state: newStoreState(), closed: make(chan struct{})}
}

// Set implements [Store].
func (s *MemStore) Set(ctx context.Context, key string, value []byte) error {
	if err := checkStoreCall(ctx, "set", key, value); err != nil {
		return err
	}
	return s.locked(func() error {
		s.state.set(key, copyValue(value))
		return nil
	})
}

// Get implements [Store].
func (s *MemStore) Get(ctx context.Context, key string) ([]byte, error) {
	if err := checkStoreWait(ctx, key); err != nil {
		return nil, err
	}
	value, err := s.await(ctx, key)
	return bytes.Clone(value), err
}

// Add implements [Store].
func (s *MemStore) Add(ctx context.Context, key string, n int64) (sum int64, err error) {
	if err := checkStoreCall(ctx, "add", key); err != nil {
		return 0, err
	}
	err = s.locked(func() (err error) {
		sum, err = s.state.add(key, n)
		return err
	})
	return sum, err
}

// CompareAndSwap implements [Store].
func (s *MemStore) CompareAndSwap(ctx context.Context, key string, old, new []byte) (now []byte, err error) {
	if err := checkStoreCall(ctx, "compare and swap", key, old, new); err != nil {
		return nil, err
	}
	err = s.locked(func() error {
		now = s.state.compareAndSwap(key, old, copyValue(new))
		return nil
	})
	return bytes.Clone(now), err
}

// Wait implements [Store].
func (s *MemStore) Wait(ctx context.Context, keys ...string) error {
	if err := checkStoreWait(ctx, keys...); err != nil {
		return err
	}
	for i, key := range keys {
		_, err := s.await(ctx, key)
		if missing, ok := errors.AsType[*MissingKeysError](err); ok {
			return &MissingKeysError{Keys: s.missing(keys[i:]), Err: missing.Err}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Delete implements [Store].
func (s *MemStore) Delete(ctx context.Context, key string) (existed bool, err error) {
	if err := checkStoreCall(ctx, "delete", key); err != nil {
		return false, err
	}
	err = s.locked(func() error {
		existed = s.state.remove(key)
		return nil
	})
	return existed, err
}

// Close implements [Store].
func (s *MemStore) Close() error {
	s.fail(ErrStoreClosed)
	return nil
}

// fail makes every pending and later call return err, unless an earlier error does so already.
func (s *MemStore) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
		close(s.closed)
	}
}

// failure is what fail was told, nil before.
func (s *MemStore) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *MemStore) locked(f func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	return f()
}

// apply stores what another handle wrote; a nil value is a deletion. A closed store ignores it.
func (s *MemStore) apply(key string, value []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if value == nil {
		s.state.remove(key)
	} else {
		s.state.set(key, value)
	}
}

// await returns the value of key, the store's own slice, once there is one.
func (s *MemStore) await(ctx context.Context, key string) (value []byte, err error) {
	ready := make(chan []byte, 1)
	var w *storeWaiter
	err = s.locked(func() error {
		var ok bool
		if value, ok = s.state.values[key]; !ok {
			w = s.state.await(key, func(v []byte) { ready <- v })
		}
		return nil
	})
	if err != nil || w == nil {
		return value, err
	}
	select {
	case value = <-ready:
		return value, nil
	case <-ctx.Done():
		err = &MissingKeysError{Keys: []string{key}, Err: ctx.Err()}
	case <-s.closed:
		err = s.failure()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.forget(w)
	return nil, err
}

func (s *MemStore) missing(keys []string) (missing []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, key := range keys {
		// The first one is why the wait ended, even if it has come since.
		if _, ok := s.state.values[key]; !ok || i == 0 {
			missing = append(missing, key)
		}
	}
	return missing
}

// copyValue returns a copy that is never nil, so that an empty value is a value.
func copyValue(v []byte) []byte { return append([]byte{}, v...) }
