package store_test

import (
	"context"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/gorun/gorun/comm/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMissingKeysErrorIsShort(t *testing.T) {
	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = strings.Repeat("k", store.MaxKey)
	}
	err := &store.MissingKeysError{Keys: keys, Err: context.DeadlineExceeded}
	if text := err.Error(); len(text) > 1200 || !strings.HasSuffix(text, " and 992 more: context deadline exceeded") {
		t.Errorf("the error is %d bytes long: %s", len(text), text)
	}
	short := &store.MissingKeysError{Keys: []string{"rank/3", "rank/7"}, Err: context.Canceled}
	if got, want := short.Error(), `store: nobody has set "rank/3", "rank/7": context canceled`; got != want {
		t.Errorf("the error is %s; want %s", got, want)
	}
}
