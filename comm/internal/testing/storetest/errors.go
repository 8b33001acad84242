package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gorun/gorun/comm/store"
)

// calls lists every method that takes a key. value is for those that take one.
var calls = map[string]func(ctx context.Context, h store.Store, key string, value []byte) error{
	"Set": func(ctx context.Context, h store.Store, key string, value []byte) error {
		return h.Set(ctx, key, value)
	},
	"Get": func(ctx context.Context, h store.Store, key string, _ []byte) error {
		_, err := h.Get(ctx, key)
		return err
	},
	"Add": func(ctx context.Context, h store.Store, key string, _ []byte) error {
		_, err := h.Add(ctx, key, 1)
		return err
	},
	"CompareAndSwap": func(ctx context.Context, h store.Store, key string, value []byte) error {
		_, err := h.CompareAndSwap(ctx, key, nil, value)
		return err
	},
	"Wait": func(ctx context.Context, h store.Store, key string, _ []byte) error {
		return h.Wait(ctx, key)
	},
	"Delete": func(ctx context.Context, h store.Store, key string, _ []byte) error {
		_, err := h.Delete(ctx, key)
		return err
	},
}

func badSizes(t *testing.T, s *suite) {
	a := s.handle()
	long := strings.Repeat("k", store.MaxKey+1)
	for name, call := range calls {
		if err := call(s.ctx, a, "", nil); err == nil || !strings.Contains(err.Error(), "0 bytes") {
			t.Errorf("%s with an empty key: %v; want an error that says so", name, err)
		}
		if err := call(s.ctx, a, long, nil); err == nil || !strings.Contains(err.Error(), fmt.Sprint(len(long))) {
			t.Errorf("%s with a key of %d bytes: %v; want an error that says so", name, len(long), err)
		}
	}
	huge := make([]byte, store.MaxValue+1)
	for _, name := range []string{"Set", "CompareAndSwap"} {
		err := calls[name](s.ctx, a, "huge", huge)
		if err == nil || !strings.Contains(err.Error(), fmt.Sprint(len(huge))) || !strings.Contains(err.Error(), "huge") {
			t.Errorf("%s of %d bytes: %v; want an error with key and size", name, len(huge), err)
		}
	}
	if _, err := a.CompareAndSwap(s.ctx, "huge", huge, nil); err == nil {
		t.Errorf("CompareAndSwap with an old value of %d bytes gave no error", len(huge))
	}
	s.wantMissing(t, a, "huge")
	fits := strings.Repeat("k", 1000) // a prefix may come before it
	s.set(t, a, fits, "v")
	s.wantGet(t, a, fits, "v")
}

func endedContext(t *testing.T, s *suite) {
	a := s.handle()
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	for name, call := range calls {
		if err := call(ctx, a, "key", []byte("v")); !errors.Is(err, context.Canceled) {
			t.Errorf("%s with an ended context: %v", name, err)
		}
	}
	_, err := a.Get(ctx, "key")
	wantMissingKeys(t, err, context.Canceled, "key")
	wantMissingKeys(t, a.Wait(ctx, "k1", "k2"), context.Canceled, "k1", "k2")
	s.wantMissing(t, a, "key")
}

func closedStore(t *testing.T, s *suite) {
	a, b := s.handle(), s.handle()
	s.set(t, a, "key", "v")
	for range 2 {
		if err := a.Close(); err != nil {
			t.Fatalf("Close: %v", err)
		}
	}
	for name, call := range calls {
		if err := call(s.ctx, a, "key", nil); !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s after Close: %v; want ErrStoreClosed", name, err)
		}
	}
	if a != b {
		s.wantGet(t, b, "key", "v")
	}
}

func closeEndsWaits(t *testing.T, s *suite) {
	a := s.handle()
	pending := []<-chan result{
		start(func() ([]byte, error) { return a.Get(s.ctx, "nobody sets this") }),
		start(func() ([]byte, error) { return nil, a.Wait(s.ctx, "nobody sets this", "nor this") }),
	}
	letWait(t, a)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	for _, p := range pending {
		if r := <-p; !errors.Is(r.err, store.ErrClosed) || r.value != nil {
			t.Errorf("a call that waits when the store is closed gets %q, %v; want ErrStoreClosed", r.value, r.err)
		}
	}
}

func getEnds(t *testing.T, s *suite) {
	a := s.handle()
	ctx, cancel := context.WithCancel(s.ctx)
	got := start(func() ([]byte, error) { return a.Get(ctx, "late") })
	letWait(t, a)
	cancel()
	wantMissingKeys(t, (<-got).err, context.Canceled, "late")
	s.set(t, a, "late", "v")
	s.wantGet(t, a, "late", "v")
}

func waitNames(t *testing.T, s *suite) {
	a, b := s.handle(), s.handle()
	s.set(t, b, "rank/1", "here")
	want := []string{"rank/0", "rank/2"}
	// It is not known how long the store needs to say that rank/1 is there.
	for limit := moment; ; limit *= 4 {
		ctx, cancel := context.WithTimeout(s.ctx, limit)
		err := a.Wait(ctx, "rank/0", "rank/1", "rank/2")
		cancel()
		var missing *store.MissingKeysError
		if errors.As(err, &missing) && !slices.Equal(missing.Keys, want) && limit < timeout/4 {
			continue
		}
		wantMissingKeys(t, err, context.DeadlineExceeded, want...)
		break
	}
	s.set(t, b, "rank/0", "here")
	s.set(t, b, "rank/2", "here")
	if err := a.Wait(s.ctx, "rank/0", "rank/1", "rank/2"); err != nil {
		t.Errorf("Wait once all have come: %v", err)
	}
}
