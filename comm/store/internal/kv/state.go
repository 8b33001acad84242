package comm

import (
	"errors"
	"math"
	"strconv"
)

// storeState is what a store holds and who waits for what: the meaning of the operations, without locks or I/O. It
// keeps the slices that it is given and hands out its own; nobody may change either.
type storeState struct {
	values  map[string][]byte
	waiters map[string]map[*storeWaiter]struct{}
}

// A storeWaiter is told once, when its key is set.
type storeWaiter struct {
	key   string
	ready func(value []byte) // must not block, nor touch the state
}

func newStoreState() storeState {
	return storeState{values: map[string][]byte{}, waiters: map[string]map[*storeWaiter]struct{}{}}
}

func (s *storeState) set(key string, value []byte) {
	s.values[key] = value
	woken := s.waiters[key]
	delete(s.waiters, key)
	for w := range woken {
		w.ready(value)
	}
}

// await has ready called at the next set of key; forget takes it back.
func (s *storeState) await(key string, ready func(value []byte)) *storeWaiter {
	w := &storeWaiter{key: key, ready: ready}
	if s.waiters[key] == nil {
		s.waiters[key] = map[*storeWaiter]struct{}{}
	}
	s.waiters[key][w] = struct{}{}
	return w
}

func (s *storeState) forget(w *storeWaiter) {
	delete(s.waiters[w.key], w)
	if len(s.waiters[w.key]) == 0 {
		delete(s.waiters, w.key)
	}
}

func (s *storeState) add(key string, n int64) (int64, error) {
	sum, err := s.sum(key, n)
	if err == nil {
		s.set(key, storeNumber(sum))
	}
	return sum, err
}

// sum is what add would store.
func (s *storeState) sum(key string, n int64) (int64, error) {
	value, ok := s.values[key]
	if !ok {
		return n, nil
	}
	now, err := strconv.ParseInt(string(value), 10, 64)
	switch {
	case err != nil:
		return 0, storeCallError("add", key, errors.New("the value is not a number"))
	case n > 0 && now > math.MaxInt64-n, n < 0 && now < math.MinInt64-n:
		return 0, storeCallError("add", key, errors.New("the sum does not fit in 64 bits"))
	}
	return now + n, nil
}

func storeNumber(n int64) []byte { return strconv.AppendInt(nil, n, 10) }

func (s *storeState) compareAndSwap(key string, old, new []byte) []byte {
	now, swap := s.swapped(key, old, new)
	if swap {
		s.set(key, new)
	}
	return now
}

// swapped says what compareAndSwap would return, and whether it would store new.
func (s *storeState) swapped(key string, old, new []byte) (now []byte, swap bool) {
	now, ok := s.values[key]
	switch {
	case string(now) == string(old): // a missing key holds nothing
		return new, true
	case !ok:
		return old, false
	}
	return now, false
}

func (s *storeState) remove(key string) bool {
	_, ok := s.values[key]
	delete(s.values, key)
	return ok
}
