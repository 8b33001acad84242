// Package kv keeps the keys and values of a store in memory. [State] is what the calls of a store mean, without locks
// or I/O: the server of package tcpstore owns one. [Shared] adds a lock and calls that wait: package memstore is one.
package kv

import (
	"context"
	"errors"

	"github.com/gorun/gorun/comm/store"
)

// Copy returns a copy of value that is not nil, because nil stands for no value.
func Copy(value []byte) []byte { return append([]byte{}, value...) }

// Ended reports whether err means that ctx has ended.
func Ended(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, ctx.Err())
}

// A State has the keys and values of a store, and the calls that wait for a key. It has no locks and does no I/O: its
// owner calls it from one goroutine at a time. It keeps the slices that it gets, and returns slices that it keeps.
// Callers may change neither.
type State struct {
	values  map[string][]byte
	waiters map[string]map[*Waiter]struct{}
}

// A Waiter waits for the next Set of one key.
type Waiter struct {
	key   string
	ready func(value []byte)
}

// NewState returns an empty State.
func NewState() *State {
	return &State{values: map[string][]byte{}, waiters: map[string]map[*Waiter]struct{}{}}
}

// Get returns the value of key, and whether key exists.
func (s *State) Get(key string) (value []byte, exists bool) {
	value, exists = s.values[key]
	return value, exists
}

// Set stores value under key, and wakes the calls that wait for key.
func (s *State) Set(key string, value []byte) {
	s.values[key] = value
	woken := s.waiters[key]
	delete(s.waiters, key)
	for w := range woken {
		w.ready(value)
	}
}

// Await has the next Set of key call ready, once. ready must neither block nor use the State.
func (s *State) Await(key string, ready func(value []byte)) *Waiter {
	w := &Waiter{key: key, ready: ready}
	if s.waiters[key] == nil {
		s.waiters[key] = map[*Waiter]struct{}{}
	}
	s.waiters[key][w] = struct{}{}
	return w
}

// Cancel undoes an Await. It does nothing if ready has been called.
func (s *State) Cancel(w *Waiter) {
	delete(s.waiters[w.key], w)
	if len(s.waiters[w.key]) == 0 {
		delete(s.waiters, w.key)
	}
}

// Add adds n to the number under key and returns the sum.
func (s *State) Add(key string, n int64) (int64, error) {
	value, exists := s.values[key]
	sum, err := store.Sum(value, exists, n)
	if err != nil {
		return 0, store.CallError("add", key, err)
	}
	s.Set(key, store.FormatNumber(sum))
	return sum, nil
}

// CompareAndSwap stores new if key holds old, and returns what key holds afterwards; see [store.Store].
func (s *State) CompareAndSwap(key string, old, new []byte) []byte {
	value, exists := s.values[key]
	result, swap := store.Swap(value, exists, old, new)
	if swap {
		s.Set(key, new)
	}
	return result
}

// Delete removes key and reports whether it existed.
func (s *State) Delete(key string) bool {
	_, existed := s.values[key]
	delete(s.values, key)
	return existed
}
