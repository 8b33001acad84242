package comm

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

const (
	// MaxStoreKey is the most bytes that a key may have; the least is 1.
	MaxStoreKey = 1024
	// MaxStoreValue is the most bytes that a value may have.
	MaxStoreValue = 16 << 20
)

// ErrStoreClosed is what every call on a closed store returns, also those that were waiting in it.
var ErrStoreClosed = errors.New("store is closed")

// A Store is the small key-value space in which ranks find each other. [NewMemStore], [NewFileStore] and
// [NewTCPStore] open one; package storetest holds what each of them, and yours, has to do.
//
// A key has 1 to [MaxStoreKey] bytes, a value 0 to [MaxStoreValue]; both are any bytes. Values are copied in and out.
// All methods may be called by many goroutines at once. Operations on one key happen one after the other, in the
// same order for everybody.
//
// A call whose ctx has ended already does nothing. One whose ctx ends while it runs returns an error that wraps
// ctx.Err(), and may have happened or not.
type Store interface {
	// Set stores value under key, whatever was there.
	Set(ctx context.Context, key string, value []byte) error

	// Get waits until key exists and returns its value. When ctx ends first the error is a [*MissingKeysError].
	Get(ctx context.Context, key string) ([]byte, error)

	// Add adds n to the number under key and returns the sum. A missing key counts as 0. Numbers are stored as
	// decimal text; it is an error when key holds anything else, or when the sum does not fit in an int64.
	Add(ctx context.Context, key string, n int64) (int64, error)

	// CompareAndSwap stores new when key holds old, or when key is missing and old is empty. It returns what
	// key holds then; when key is missing and old is not empty that is nothing, and it returns old, as torch does.
	CompareAndSwap(ctx context.Context, key string, old, new []byte) ([]byte, error)

	// Wait waits until it has seen every key. When ctx ends first the error is a [*MissingKeysError].
	Wait(ctx context.Context, keys ...string) error

	// Delete removes key and says whether it existed.
	Delete(ctx context.Context, key string) (bool, error)

	// Close ends this handle: pending and later calls return [ErrStoreClosed]. Closing again does nothing.
	Close() error
}

// A MissingKeysError says which keys had not been seen when a wait ended.
type MissingKeysError struct {
	Keys []string // in the order in which they were asked for
	Err  error    // the context's error
}

// Error names the first few keys.
func (e *MissingKeysError) Error() string {
	const most = 8
	named := make([]string, 0, most)
	for _, key := range e.Keys[:min(len(e.Keys), most)] {
		named = append(named, fmt.Sprintf("%q", shortKey(key)))
	}
	more := ""
	if n := len(e.Keys) - most; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("store: nobody has set %s%s: %v", strings.Join(named, ", "), more, e.Err)
}

// Unwrap returns the context's error.
func (e *MissingKeysError) Unwrap() error { return e.Err }

// checkStoreCall is the first step of every call that does not wait for keys.
func checkStoreCall(ctx context.Context, op, key string, values ...[]byte) error {
	if err := checkStoreSizes(key, values...); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return storeCallError(op, key, err)
	}
	return nil
}

// checkStoreWait is the first step of every call that waits for keys.
func checkStoreWait(ctx context.Context, keys ...string) error {
	for _, key := range keys {
		if err := checkStoreSizes(key); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return &MissingKeysError{Keys: keys, Err: err}
	}
	return nil
}

func checkStoreSizes(key string, values ...[]byte) error {
	if len(key) == 0 || len(key) > MaxStoreKey {
		return fmt.Errorf("store: key %q has %d bytes: it must have 1 to %d", shortKey(key), len(key), MaxStoreKey)
	}
	for _, v := range values {
		if len(v) > MaxStoreValue {
			return fmt.Errorf("store: value of %d bytes for key %q: the most is %d", len(v), shortKey(key), MaxStoreValue)
		}
	}
	return nil
}

func storeCallError(op, key string, err error) error {
	return fmt.Errorf("store: %s %q: %w", op, shortKey(key), err)
}

// shortKey keeps a long key from filling the screen.
func shortKey(key string) string {
	const most = 100
	if len(key) <= most {
		return key
	}
	return key[:most] + "..."
}
