package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// CheckCall checks the arguments of a call that does not wait for keys. Every such call of an implementation begins with
// it. op is the call in words, such as "set".
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

// Swap decides a CompareAndSwap of a key that holds value, or does not exist. It returns what CompareAndSwap returns, and
// reports whether new is to be stored.
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
