// Package memstore keeps a [store.Store] in the memory of one process, for ranks that are goroutines. It is c10d's
// HashStore.
package memstore

import (
	"bytes"
	"context"

	"github.com/gorun/gorun/comm/internal/store/kv"
	"github.com/gorun/gorun/comm/store"
)

// A Store is a [store.Store] in the memory of this process.
type Store struct{ shared *kv.Shared }

// New returns an empty store. Those that share it also share its Close.
func New() *Store { return &Store{kv.NewShared()} }

// Set implements [store.Store].
func (s *Store) Set(ctx context.Context, key string, value []byte) error {
	if err := store.CheckCall(ctx, "set", key, value); err != nil {
		return err
	}
	return s.shared.Do(func(state *kv.State) error {
		state.Set(key, kv.Copy(value))
		return nil
	})
}

// Get implements [store.Store].
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) { return s.shared.Get(ctx, key) }

// Add implements [store.Store].
func (s *Store) Add(ctx context.Context, key string, n int64) (sum int64, err error) {
	if err := store.CheckCall(ctx, "add", key); err != nil {
		return 0, err
	}
	err = s.shared.Do(func(state *kv.State) (err error) {
		sum, err = state.Add(key, n)
		return err
	})
	return sum, err
}

// CompareAndSwap implements [store.Store].
func (s *Store) CompareAndSwap(ctx context.Context, key string, old, new []byte) (result []byte, err error) {
	if err := store.CheckCall(ctx, "compare and swap", key, old, new); err != nil {
		return nil, err
	}
	err = s.shared.Do(func(state *kv.State) error {
		result = state.CompareAndSwap(key, old, kv.Copy(new))
		return nil
	})
	return bytes.Clone(result), err
}

// Wait implements [store.Store].
func (s *Store) Wait(ctx context.Context, keys ...string) error { return s.shared.Wait(ctx, keys...) }

// Delete implements [store.Store].
func (s *Store) Delete(ctx context.Context, key string) (existed bool, err error) {
	if err := store.CheckCall(ctx, "delete", key); err != nil {
		return false, err
	}
	err = s.shared.Do(func(state *kv.State) error {
		existed = state.Delete(key)
		return nil
	})
	return existed, err
}

// Close implements [store.Store].
func (s *Store) Close() error {
	s.shared.Fail(store.ErrClosed)
	return nil
}
