package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
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
// there are.
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

// CheckCall checks the arguments of a call that does not wait for keys. Every such call of an implementation begins
// with it. op is the call in words, such as "set".
func CheckCall(ctx context.Context, op, key string, values ...[]byte) error {
	if err := cmp.Or(CheckKey(key), CheckValues(key, values...)); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return CallError(op, key, err)
	}
	return nil
}

// CheckWait checks the arguments of a call that waits for keys. Get and Wait of an implementation begin with it.
func CheckWait(ctx context.Context, keys ...string) error {
	for _, key := range keys {
		if err := CheckKey(key); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return &MissingKeysError{Keys: keys, Err: err}
	}
	return nil
}

// CheckKey returns an error if key is empty or longer than [MaxKey].
func CheckKey(key string) error {
	if len(key) == 0 || len(key) > MaxKey {
		return fmt.Errorf("store: key %q has %d bytes: it must have 1 to %d", shorten(key), len(key), MaxKey)
	}
	return nil
}

// CheckValues returns an error if one of the values meant for key is longer than [MaxValue].
func CheckValues(key string, values ...[]byte) error {
	for _, v := range values {
		if len(v) > MaxValue {
			return fmt.Errorf("store: value of %d bytes for key %q: the most is %d", len(v), shorten(key), MaxValue)
		}
	}
	return nil
}

// CallError adds to err which call failed. It wraps err.
func CallError(op, key string, err error) error {
	return fmt.Errorf("store: %s %q: %w", op, shorten(key), err)
}

// Sum returns what Add stores: n more than the number in value, or n if the key does not exist.
func Sum(value []byte, exists bool, n int64) (int64, error) {
	if !exists {
		return n, nil
	}
	number, err := strconv.ParseInt(string(value), 10, 64)
	switch {
	case err != nil:
		return 0, errors.New("the value is not a number")
	case n > 0 && number > math.MaxInt64-n, n < 0 && number < math.MinInt64-n:
		return 0, errors.New("the sum does not fit in 64 bits")
	}
	return number + n, nil
}

// FormatNumber returns the value that Add stores for the number n.
func FormatNumber(n int64) []byte { return strconv.AppendInt(nil, n, 10) }

// Swap decides a CompareAndSwap of a key that holds value, or does not exist. It returns what CompareAndSwap returns,
// and reports whether new is to be stored.
func Swap(value []byte, exists bool, old, new []byte) (result []byte, swap bool) {
	switch {
	case string(value) == string(old): // a missing key holds nothing
		return new, true
	case !exists:
		return old, false
	}
	return value, false
}

// shorten keeps a long key from filling the screen.
func shorten(key string) string {
	const most = 100
	if len(key) <= most {
		return key
	}
	return key[:most] + "..."
}
