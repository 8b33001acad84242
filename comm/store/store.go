package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

const (
	// MaxKey is the longest key, in bytes. The shortest has one byte.
	MaxKey = 1024
	// MaxValue is the longest value, in bytes. A value may be empty.
	MaxValue = 16 << 20
)

// ErrClosed is what every call on a closed store returns. Calls that were waiting when it was closed return it too.
var ErrClosed = errors.New("store is closed")

// A Store is the small key-value space in which ranks find each other. The package comment says which implementations
// there are; package storetest tests them, and yours.
//
// A key has 1 to [MaxKey] bytes, a value 0 to [MaxValue]. Both may be any bytes. Values are copied in and out.
// Many goroutines may call all methods at once. Operations on one key happen one after the other, in the same order for
// everybody.
//
// A call whose ctx has already ended does nothing. A call whose ctx ends while it runs returns an error that wraps
// ctx.Err(); it may or may not have happened.
type Store interface {
	// Set stores value under key and replaces what was there.
	Set(ctx context.Context, key string, value []byte) error
	// Get waits until key exists and returns its value. If ctx ends first, the error is a [*MissingKeysError].
	Get(ctx context.Context, key string) ([]byte, error)
	// Add adds n to the number under key and returns the sum. A missing key counts as 0. Numbers are stored as
	// decimal text. It is an error if key holds anything else, or if the sum does not fit in an int64.
	Add(ctx context.Context, key string, n int64) (int64, error)
	// CompareAndSwap stores new if key holds old, or if key is missing and old is empty. It returns what key holds
	// afterwards. If key is missing and old is not empty, key stays missing, and it returns old, as torch does.
	CompareAndSwap(ctx context.Context, key string, old, new []byte) ([]byte, error)
	// Wait waits until it has seen every key. If ctx ends first, the error is a [*MissingKeysError].
	Wait(ctx context.Context, keys ...string) error
	// Delete removes key and reports whether it existed.
	Delete(ctx context.Context, key string) (bool, error)
	// Close ends this handle: pending and later calls return [ErrClosed]. Closing again does nothing.
	Close() error
}

// A MissingKeysError says which keys had not been seen when a wait ended.
type MissingKeysError struct {
	Keys []string // in the order of the call's arguments
	Err  error    // the context's error
}

// Error names the first few keys.
func (e *MissingKeysError) Error() string {
	const most = 8
	named := make([]string, 0, most)
	for _, key := range e.Keys[:min(len(e.Keys), most)] {
		named = append(named, fmt.Sprintf("%q", shorten(key)))
	}
	more := ""
	if n := len(e.Keys) - most; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("store: nobody has set %s%s: %v", strings.Join(named, ", "), more, e.Err)
}

// Unwrap returns the context's error.
func (e *MissingKeysError) Unwrap() error { return e.Err }
