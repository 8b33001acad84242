package main

/*
#include "call.h"

// Go cannot call a pointer to a function.
static inline int call_set(const gorun_store_functions *f, const char *key, const void *value, size_t length)
{
	return f->set(f->context, key, value, length);
}

static inline int call_get(const gorun_store_functions *f, const char *key, double seconds, void *value, size_t room, size_t *length)
{
	return f->get(f->context, key, seconds, value, room, length);
}

static inline int call_add(const gorun_store_functions *f, const char *key, int64_t amount, int64_t *sum)
{
	return f->add(f->context, key, amount, sum);
}

static inline int call_swap(const gorun_store_functions *f, const char *key, const void *old, size_t old_length, const void *value,
	size_t value_length, void *now, size_t room, size_t *now_length)
{
	return f->compare_and_swap(f->context, key, old, old_length, value, value_length, now, room, now_length);
}

static inline int call_delete(const gorun_store_functions *f, const char *key, int *was_set)
{
	return f->delete_key(f->context, key, was_set);
}
*/
import "C"

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/gorun/gorun/comm"
	"github.com/gorun/gorun/comm/store"
)

// A customStore calls functions of C.
type customStore struct {
	functions C.gorun_store_functions
	closed    atomic.Bool
}

// waitSlice is how long one call of get may wait, in seconds: so long does a call go on after its context has ended.
const waitSlice = 0.2

// firstRoom is what a value may have without a second call.
const firstRoom = 64 << 10

//export goStoreCustom
func goStoreCustom(functions *C.gorun_store_functions, to *C.gorun_store) (code C.int) {
	defer checked("Store", &code)()
	*to = 0
	f := *functions
	if f.set == nil || f.get == nil || f.add == nil || f.compare_and_swap == nil || f.delete_key == nil {
		return fail(refuse("Store", "a function is NULL"))
	}
	*to = C.gorun_store(stores.add(&customStore{functions: f}))
	return C.GORUN_SUCCESS
}

// call makes one call of C: f gets its key.
func (s *customStore) call(ctx context.Context, op, key string, f func(key *C.char) C.int, values ...[]byte) error {
	if err := store.CheckCall(ctx, op, key, values...); err != nil {
		return err
	}
	if s.closed.Load() {
		return store.ErrClosed
	}
	if strings.Contains(key, "\x00") {
		return store.CallError(op, key, fmt.Errorf("the key has a zero byte, with which keys of C end"))
	}
	k := newCString(key)
	if code := f(k); code != C.GORUN_SUCCESS {
		return store.CallError(op, key, codeError(code))
	}
	return nil
}

// A codeError is the code with which a function of the caller has failed.
type codeError C.int

func (e codeError) Error() string {
	return fmt.Sprintf("the function of the store has returned %d", int(e))
}

func (s *customStore) Set(ctx context.Context, key string, value []byte) error {
	return s.call(ctx, "set", key, func(k *C.char) C.int {
		return C.call_set(&s.functions, k, pointer(value), C.size_t(len(value)))
	}, value)
}

func (s *customStore) Get(ctx context.Context, key string) ([]byte, error) {
	if err := store.CheckWait(ctx, key); err != nil {
		return nil, err
	}
	value := make([]byte, firstRoom)
	for {
		var length C.size_t
		var code C.int
		err := s.call(ctx, "get", key, func(k *C.char) C.int {
			code = C.call_get(&s.functions, k, waitSlice, pointer(value), C.size_t(len(value)), &length)
			return code
		})
		switch {
		case ctx.Err() != nil:
			return nil, &store.MissingKeysError{Keys: []string{key}, Err: ctx.Err()}
		case code == C.GORUN_ERR_MISSING_KEYS:
		case err != nil:
			return nil, err
		case length > store.MaxValue:
			return nil, store.CallError("get", key, fmt.Errorf("a value of %d bytes: the most is %d", uint64(length), store.MaxValue))
		case int(length) > len(value):
			value = make([]byte, length)
		default:
			return value[:length:length], nil
		}
	}
}

func (s *customStore) Add(ctx context.Context, key string, n int64) (int64, error) {
	var sum C.int64_t
	err := s.call(ctx, "add", key, func(k *C.char) C.int { return C.call_add(&s.functions, k, C.int64_t(n), &sum) })
	return int64(sum), err
}

// CompareAndSwap of a key whose value is longer than there is room for is an error: the call cannot be made again.
func (s *customStore) CompareAndSwap(ctx context.Context, key string, old, value []byte) ([]byte, error) {
	now := make([]byte, firstRoom)
	var length C.size_t
	err := s.call(ctx, "compare and swap", key, func(k *C.char) C.int {
		return C.call_swap(&s.functions, k, pointer(old), C.size_t(len(old)), pointer(value), C.size_t(len(value)),
			pointer(now), C.size_t(len(now)), &length)
	}, old, value)
	if err == nil && int(length) > len(now) {
		err = store.CallError("compare and swap", key, fmt.Errorf("a value of %d bytes: the most is %d", uint64(length), len(now)))
	}
	if err != nil {
		return nil, err
	}
	return now[:length], nil
}

func (s *customStore) Wait(ctx context.Context, keys ...string) error {
	if err := store.CheckWait(ctx, keys...); err != nil {
		return err
	}
	for i, key := range keys {
		if _, err := s.Get(ctx, key); ctx.Err() != nil {
			return &store.MissingKeysError{Keys: keys[i:], Err: ctx.Err()}
		} else if err != nil {
			return err
		}
	}
	return nil
}

func (s *customStore) Delete(ctx context.Context, key string) (bool, error) {
	var was C.int
	err := s.call(ctx, "delete", key, func(k *C.char) C.int { return C.call_delete(&s.functions, k, &was) })
	return was != 0, err
}

func (s *customStore) Close() error {
	s.closed.Store(true)
	return nil
}

var _ comm.Store = (*customStore)(nil)

// pointer is where b begins.
func pointer(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }

// newCString is s and a zero byte, in memory of Go.
func newCString(s string) *C.char { return (*C.char)(pointer(append([]byte(s), 0))) }
