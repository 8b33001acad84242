package store

import (
	"context"
	"errors"
	"strings"
	"time"
)

// A prefixStore is a view of the keys of another store that begin with prefix. Its callers do not see the prefix.
type prefixStore struct {
	parent Store
	prefix string
	open   context.Context // ends when the view is closed
	end    context.CancelFunc
}

// NewPrefix returns a view of s that puts prefix before every key, without a separator. A [MissingKeysError] names keys
// without the prefix. Prefix and key together may have [MaxKey] bytes. Closing the view ends the calls made through it
// and leaves s open.
func NewPrefix(s Store, prefix string) Store {
	open, end := context.WithCancel(context.Background())
	return &prefixStore{parent: s, prefix: prefix, open: open, end: end}
}

func (s *prefixStore) Set(ctx context.Context, key string, value []byte) error {
	_, err := prefixCall(ctx, s, []string{key}, func(ctx context.Context, keys []string) (struct{}, error) {
		return struct{}{}, s.parent.Set(ctx, keys[0], value)
	})
	return err
}

func (s *prefixStore) Get(ctx context.Context, key string) ([]byte, error) {
	return prefixCall(ctx, s, []string{key}, func(ctx context.Context, keys []string) ([]byte, error) {
		return s.parent.Get(ctx, keys[0])
	})
}

func (s *prefixStore) Add(ctx context.Context, key string, n int64) (int64, error) {
	return prefixCall(ctx, s, []string{key}, func(ctx context.Context, keys []string) (int64, error) {
		return s.parent.Add(ctx, keys[0], n)
	})
}

func (s *prefixStore) CompareAndSwap(ctx context.Context, key string, old, new []byte) ([]byte, error) {
	return prefixCall(ctx, s, []string{key}, func(ctx context.Context, keys []string) ([]byte, error) {
		return s.parent.CompareAndSwap(ctx, keys[0], old, new)
	})
}

func (s *prefixStore) Wait(ctx context.Context, keys ...string) error {
	_, err := prefixCall(ctx, s, keys, func(ctx context.Context, keys []string) (struct{}, error) {
		return struct{}{}, s.parent.Wait(ctx, keys...)
	})
	return err
}

func (s *prefixStore) Delete(ctx context.Context, key string) (bool, error) {
	return prefixCall(ctx, s, []string{key}, func(ctx context.Context, keys []string) (bool, error) {
		return s.parent.Delete(ctx, keys[0])
	})
}

func (s *prefixStore) Close() error {
	s.end()
	return nil
}

// RoundTrip returns that of the parent, as a TCPStore has it, or 0 if it has none.
func (s *prefixStore) RoundTrip() time.Duration {
	if measures, ok := s.parent.(interface{ RoundTrip() time.Duration }); ok {
		return measures.RoundTrip()
	}
	return 0
}

// prefixCall makes one call on the parent. The call ends when ctx ends or the view is closed.
func prefixCall[R any](ctx context.Context, s *prefixStore, keys []string, call func(context.Context, []string) (R, error)) (R, error) {
	var none R
	if s.open.Err() != nil {
		return none, ErrClosed
	}
	full := make([]string, len(keys))
	for i, key := range keys {
		if err := CheckKey(key); err != nil {
			return none, err
		}
		full[i] = s.prefix + key
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(s.open, cancel)
	defer stop()
	r, err := call(ctx, full)
	missing, isMissing := errors.AsType[*MissingKeysError](err)
	switch {
	case err == nil:
		return r, nil
	case s.open.Err() != nil:
		return none, ErrClosed
	case isMissing:
		short := make([]string, len(missing.Keys))
		for i, key := range missing.Keys {
			short[i] = strings.TrimPrefix(key, s.prefix)
		}
		return none, &MissingKeysError{Keys: short, Err: missing.Err}
	}
	return none, err
}
