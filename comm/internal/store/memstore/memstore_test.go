package memstore_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/gorun/gorun/comm/internal/store/memstore"
	"github.com/gorun/gorun/comm/internal/testing/storetest"
	"github.com/gorun/gorun/comm/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	storetest.Run(t, func(*testing.T) func() store.Store {
		shared := memstore.New()
		return func() store.Store { return shared }
	})
}
