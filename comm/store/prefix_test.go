package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gorun/gorun/comm/internal/store/memstore"
	"github.com/gorun/gorun/comm/internal/testing/storetest"
	"github.com/gorun/gorun/comm/store"
)

func TestPrefixStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) func() store.Store {
		parent := memstore.New()
		t.Cleanup(func() { parent.Close() })
		return func() store.Store { return store.NewPrefix(store.NewPrefix(parent, "round/7/"), "rank/") }
	})
}

// TestPrefixStoreHasTheRoundTripOfItsParent: comm asks for it to find out whether machines are far away from each
// other.
func TestPrefixStoreHasTheRoundTripOfItsParent(t *testing.T) {
	parent := memstore.New()
	defer parent.Close()
	for _, c := range []struct {
		parent store.Store
		want   time.Duration
	}{{parent, 0}, {farStore{parent}, time.Second}} {
		view := store.NewPrefix(store.NewPrefix(c.parent, "a/"), "b/").(interface{ RoundTrip() time.Duration })
		if got := view.RoundTrip(); got != c.want {
			t.Errorf("%v, want %v", got, c.want)
		}
	}
}

type farStore struct{ store.Store }

func (farStore) RoundTrip() time.Duration { return time.Second }

func TestPrefixesAreApart(t *testing.T) {
	ctx := t.Context()
	parent := memstore.New()
	a, b := store.NewPrefix(parent, "a/"), store.NewPrefix(parent, "b/")
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
	if _, err := b.Get(ctx, strings.Repeat("k", store.MaxKey)); err == nil {
		t.Error("prefix and key together are longer than a key may be, and there is no error")
	}
	if err := parent.Close(); err != nil {
		t.Fatal(err)
	}
	if err := b.Set(ctx, "key", nil); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Set through a view of a closed store: %v", err)
	}
}
