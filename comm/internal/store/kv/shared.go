package kv

import (
	"bytes"
	"context"
	"errors"
	"sync"

	"github.com/gorun/gorun/comm/store"
)

// A Shared is a State that goroutines share. Its Get and Wait wait for keys, as those of a [store.Store] do.
type Shared struct {
	mu     sync.Mutex
	state  *State
	err    error         // why the store is closed
	closed chan struct{} // closed when err is set
}

// NewShared returns an empty Shared.
func NewShared() *Shared {
	return &Shared{state: NewState(), closed: make(chan struct{})}
}

// Do calls f while no other goroutine uses the State. It returns f's error, or the one of Fail without calling f.
func (s *Shared) Do(f func(*State) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	return f(s.state)
}

// Get waits for key and returns a copy of its value.
func (s *Shared) Get(ctx context.Context, key string) ([]byte, error) {
	if err := store.CheckWait(ctx, key); err != nil {
		return nil, err
	}
	value, err := s.await(ctx, key)
	return bytes.Clone(value), err
}

// Wait waits until it has seen every key.
func (s *Shared) Wait(ctx context.Context, keys ...string) error {
	if err := store.CheckWait(ctx, keys...); err != nil {
		return err
	}
	for i, key := range keys {
		_, err := s.await(ctx, key)
		if missing, ok := errors.AsType[*store.MissingKeysError](err); ok {
			return &store.MissingKeysError{Keys: s.missing(keys[i:]), Err: missing.Err}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Fail makes every pending and later call return err. Only the first Fail counts.
func (s *Shared) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
		close(s.closed)
	}
}

// await returns the value of key, as the State has it, once key exists.
func (s *Shared) await(ctx context.Context, key string) (value []byte, err error) {
	ready := make(chan []byte, 1)
	var w *Waiter
	err = s.Do(func(state *State) error {
		var exists bool
		if value, exists = state.Get(key); !exists {
			w = state.Await(key, func(v []byte) { ready <- v })
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
		err = &store.MissingKeysError{Keys: []string{key}, Err: ctx.Err()}
	case <-s.closed:
		err = s.Do(func(*State) error { return nil }) // that of Fail
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Cancel(w)
	return nil, err
}

// missing returns those of keys that do not exist. The first one is always among them: it is why a wait ended, even if
// it has been set since.
func (s *Shared) missing(keys []string) (missing []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, key := range keys {
		if _, exists := s.state.Get(key); !exists || i == 0 {
			missing = append(missing, key)
		}
	}
	return missing
}
