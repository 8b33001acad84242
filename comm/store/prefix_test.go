package comm_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gorun/gorun/comm"
	"github.com/gorun/gorun/comm/storetest"
)

// leaveNothing fails the test if it leaves a goroutine behind, after all its other clean-ups.
func leaveNothing(t *testing.T) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
}

func TestMemStore(t *testing.T) {
	leaveNothing(t)
	storetest.Run(t, func(*testing.T) func() comm.Store {
		s := comm.NewMemStore()
		return func() comm.Store { return s }
	})
}

func TestPrefixStore(t *testing.T) {
	leaveNothing(t)
	storetest.Run(t, func(t *testing.T) func() comm.Store {
		parent := comm.NewMemStore()
		t.Cleanup(func() { parent.Close() })
		return func() comm.Store { return comm.NewPrefixStore(comm.NewPrefixStore(parent, "round/7/"), "rank/") }
	})
}

func TestTCPStore(t *testing.T) {
	leaveNothing(t)
	storetest.Run(t, func(t *testing.T) func() comm.Store {
		server := serveStore(t, "secret")
		return func() comm.Store { return dialStore(t, server, "secret") }
	})
}

// serveStore starts a server on a free port of this machine.
func serveStore(t *testing.T, token string) *comm.StoreServer {
	t.Helper()
	server, err := comm.ListenStore("127.0.0.1:0", []byte(token), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Errorf("Close of the server: %v", err)
		}
	})
	return server
}

func dialStore(t *testing.T, server *comm.StoreServer, token string) *comm.TCPStore {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := comm.NewTCPStore(ctx, server.Addr(), []byte(token))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestPrefixesAreApart(t *testing.T) {
	ctx := t.Context()
	parent := comm.NewMemStore()
	a, b := comm.NewPrefixStore(parent, "a/"), comm.NewPrefixStore(parent, "b/")
	if err := a.Set(ctx, "key", []byte("of a")); err != nil {
		t.Fatal(err)
	}
	if existed, err := b.Delete(ctx, "key"); existed || err != nil {
		t.Errorf("b sees what a has set: %v, %v", existed, err)
	}
	if v, err := parent.Get(ctx, "a/key"); string(v) != "of a" || err != nil {
		t.Errorf("the parent has %q, %v under a/key", v, err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := b.Set(ctx, "key", nil); err != nil {
		t.Errorf("closing one view closed another: %v", err)
	}
	if _, err := b.Get(ctx, strings.Repeat("k", comm.MaxStoreKey)); err == nil {
		t.Error("prefix and key together are longer than a key may be, and there is no error")
	}
	if err := parent.Close(); err != nil {
		t.Fatal(err)
	}
	if err := b.Set(ctx, "key", nil); !errors.Is(err, comm.ErrStoreClosed) {
		t.Errorf("Set through a view of a closed store: %v", err)
	}
}

func TestMissingKeysErrorIsShort(t *testing.T) {
	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = strings.Repeat("k", comm.MaxStoreKey)
	}
	err := &comm.MissingKeysError{Keys: keys, Err: context.DeadlineExceeded}
	if text := err.Error(); len(text) > 1200 || !strings.HasSuffix(text, " and 992 more: context deadline exceeded") {
		t.Errorf("the error is %d bytes long: %s", len(text), text)
	}
	short := &comm.MissingKeysError{Keys: []string{"rank/3", "rank/7"}, Err: context.Canceled}
	if got, want := short.Error(), `store: nobody has set "rank/3", "rank/7": context canceled`; got != want {
		t.Errorf("the error is %s; want %s", got, want)
	}
}
