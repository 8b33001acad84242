//go:build cgo

package main

import (
	"fmt"
	"sync"
)

// handles are what C has instead of pointers to values of Go. A number is used once, so that a handle that has been
// given back is not another one.
type handles[T any] struct {
	mu   sync.RWMutex
	last uint64
	all  map[uint64]T
}

// add returns a handle of v.
func (h *handles[T]) add(v T) uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all == nil {
		h.all = make(map[uint64]T)
	}
	h.last++
	h.all[h.last] = v
	return h.last
}

// get returns what n is a handle of, if it is one.
func (h *handles[T]) get(n uint64) (v T, ok bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	v, ok = h.all[n]
	return v, ok
}

// remove is get, and ends n.
func (h *handles[T]) remove(n uint64) (v T, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	v, ok = h.all[n]
	delete(h.all, n)
	return v, ok
}

// missing returns the error of a call of op with n, which is no handle of a what. closed is the error if it has been one.
func (h *handles[T]) missing(n uint64, op, what string, closed error) error {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if n == 0 || n > h.last {
		return refuse(op, "%d is no %s", n, what)
	}
	return fmt.Errorf("comm: %s: %w", op, closed)
}

// removeFunc ends the handles of all values for which del says so.
func (h *handles[T]) removeFunc(del func(T) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for n, v := range h.all {
		if del(v) {
			delete(h.all, n)
		}
	}
}
