// Package storetest is the conformance suite of [store.Store]: it tests what every store has to do.
//
// Ten lines test a store of your own:
//
//	func TestMyStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) func() store.Store {
//			server := startMine(t)
//			return func() store.Store { return connectMine(t, server) }
//		})
//	}
//
// The suite uses several handles of one store at once, from several goroutines. Run it with the race detector. It waits
// for events, never for time to pass, and gives up after a minute.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gorun/gorun/comm/store"
)

const (
	timeout = time.Minute           // within which what must happen has happened
	moment  = 20 * time.Millisecond // in which a call has most likely begun to wait; nothing depends on it
)

// Run runs the suite. Each test calls open once, for a new and empty store. It then calls the function that open
// returned for every handle that it needs. That returns a new handle, or always the same one if the store has only one.
// The suite closes the handles.
func Run(t *testing.T, open func(t *testing.T) func() store.Store) {
	t.Helper()
	for name, test := range map[string]func(t *testing.T, s *suite){
		"Set and Get":                       setAndGet,
		"values are any bytes":              anyBytes,
		"values are copied":                 copied,
		"the biggest value":                 biggest,
		"bad keys and values":               badSizes,
		"Get waits for another's Set":       getWaits,
		"one Set wakes everybody":           setWakesAll,
		"Wait waits for all":                waitWaits,
		"Wait names what is missing":        waitNames,
		"Get ends with its context":         getEnds,
		"an ended context does nothing":     endedContext,
		"Add":                               add,
		"Add wants a number":                addWantsNumber,
		"Add from everywhere adds up":       addConcurrently,
		"CompareAndSwap":                    compareAndSwap,
		"CompareAndSwap elects one":         electOne,
		"Delete":                            remove,
		"Close ends what waits":             closeEndsWaits,
		"a closed store does nothing":       closedStore,
		"a waiting Get holds up nobody":     waitDelaysNobody,
		"what one wrote all read, in order": ordered,
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), timeout)
			defer cancel()
			handle := open(t)
			test(t, &suite{ctx: ctx, handle: func() store.Store {
				s := handle()
				t.Cleanup(func() {
					if err := s.Close(); err != nil {
						t.Errorf("Close: %v", err)
					}
				})
				return s
			}})
		})
	}
}

// A suite is what one test uses.
type suite struct {
	ctx    context.Context
	handle func() store.Store
}

func (s *suite) set(t *testing.T, h store.Store, key, value string) {
	t.Helper()
	if err := h.Set(s.ctx, key, []byte(value)); err != nil {
		t.Fatalf("Set(%q): %v", key, err)
	}
}

func (s *suite) wantGet(t *testing.T, h store.Store, key, want string) {
	t.Helper()
	if got, err := h.Get(s.ctx, key); err != nil || string(got) != want {
		t.Fatalf("Get(%q) = %q, %v; want %q", key, got, err, want)
	}
}

func (s *suite) wantAdd(t *testing.T, h store.Store, key string, n, want int64) {
	t.Helper()
	if got, err := h.Add(s.ctx, key, n); err != nil || got != want {
		t.Fatalf("Add(%q, %d) = %d, %v; want %d", key, n, got, err, want)
	}
}

func (s *suite) wantSwap(t *testing.T, h store.Store, key, old, new, want string) {
	t.Helper()
	if got, err := h.CompareAndSwap(s.ctx, key, []byte(old), []byte(new)); err != nil || string(got) != want {
		t.Fatalf("CompareAndSwap(%q, %q, %q) = %q, %v; want %q", key, old, new, got, err, want)
	}
}

// wantMissing fails if key exists, and leaves it missing.
func (s *suite) wantMissing(t *testing.T, h store.Store, key string) {
	t.Helper()
	if existed, err := h.Delete(s.ctx, key); err != nil || existed {
		t.Fatalf("Delete(%q) = %v, %v; want it to be missing", key, existed, err)
	}
}

// letWait gives calls that were started the time to begin to wait.
func letWait(t *testing.T, h store.Store) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), moment)
	defer cancel()
	if _, err := h.Get(ctx, "never"); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Get of a key that nobody sets: %v", err)
	}
}

type result struct {
	value []byte
	err   error
}

// start makes a call in another goroutine.
func start(call func() ([]byte, error)) <-chan result {
	done := make(chan result, 1)
	go func() {
		value, err := call()
		done <- result{value, err}
	}()
	return done
}

// together runs f(0) to f(n-1) concurrently.
func together(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

func wantMissingKeys(t *testing.T, err, cause error, keys ...string) {
	t.Helper()
	var missing *store.MissingKeysError
	if !errors.As(err, &missing) || !errors.Is(err, cause) || !slices.Equal(missing.Keys, keys) {
		t.Errorf("error %v; want a MissingKeysError that wraps %v and names %q", err, cause, keys)
	}
}

func setAndGet(t *testing.T, s *suite) {
	a, b := s.handle(), s.handle()
	s.set(t, a, "key", "one")
	s.wantGet(t, a, "key", "one")
	s.wantGet(t, b, "key", "one")
	s.set(t, b, "key", "two")
	s.wantGet(t, a, "key", "two")
	s.set(t, b, "other", "three")
	s.wantGet(t, a, "key", "two")
	if err := a.Wait(s.ctx, "other", "key", "other"); err != nil {
		t.Errorf("Wait for keys that exist: %v", err)
	}
	if err := a.Wait(s.ctx); err != nil {
		t.Errorf("Wait for nothing: %v", err)
	}
}

func anyBytes(t *testing.T, s *suite) {
	a, b := s.handle(), s.handle()
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for _, value := range []string{"", "\x00", "\n", string(all), "\xff\xfe"} {
		for _, key := range []string{"k", "a/b c", "\x00", string(all)} {
			s.set(t, a, key, value)
			s.wantGet(t, b, key, value)
		}
	}
	if err := a.Set(s.ctx, "nil", nil); err != nil {
		t.Fatalf("Set of nil: %v", err)
	}
	s.wantGet(t, b, "nil", "")
}

func copied(t *testing.T, s *suite) {
	a := s.handle()
	mine := []byte("as it was")
	if err := a.Set(s.ctx, "key", mine); err != nil {
		t.Fatal(err)
	}
	mine[0] = 'X'
	got, err := a.Get(s.ctx, "key")
	if err != nil {
		t.Fatal(err)
	}
	got[1] = 'X'
	s.wantGet(t, a, "key", "as it was")

	next := []byte("swapped")
	got, err = a.CompareAndSwap(s.ctx, "key", []byte("as it was"), next)
	if err != nil {
		t.Fatal(err)
	}
	next[0], got[1] = 'X', 'X'
	s.wantGet(t, a, "key", "swapped")
}

func biggest(t *testing.T, s *suite) {
	a, b := s.handle(), s.handle()
	big := bytes.Repeat([]byte("0123456789abcdef"), store.MaxValue/16)
	if err := a.Set(s.ctx, "big", big); err != nil {
		t.Fatal(err)
	}
	if got, err := b.Get(s.ctx, "big"); err != nil || !bytes.Equal(got, big) {
		t.Fatalf("Get of %d bytes = %d bytes, %v", len(big), len(got), err)
	}
	next := bytes.ToUpper(big)
	if got, err := b.CompareAndSwap(s.ctx, "big", big, next); err != nil || !bytes.Equal(got, next) {
		t.Fatalf("CompareAndSwap of %d bytes = %d bytes, %v", len(big), len(got), err)
	}
}

// ordered: a handle that sees the last of several writes sees all of them.
func ordered(t *testing.T, s *suite) {
	const n = 50
	a, b := s.handle(), s.handle()
	done := start(func() ([]byte, error) {
		for i := range n {
			if err := a.Set(s.ctx, string(rune('A'+i)), []byte{byte(i)}); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
	s.wantGet(t, b, string(rune('A'+n-1)), string([]byte{n - 1}))
	for i := range n {
		if existed, err := b.Delete(s.ctx, string(rune('A'+i))); err != nil || !existed {
			t.Fatalf("the last key of a series was there, and %d not: %v", i, err)
		}
	}
	if r := <-done; r.err != nil {
		t.Fatal(r.err)
	}
}
