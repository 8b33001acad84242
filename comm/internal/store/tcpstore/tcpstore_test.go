package tcpstore_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gorun/gorun/comm/internal/store/tcpstore"
	"github.com/gorun/gorun/comm/internal/testing/storetest"
	"github.com/gorun/gorun/comm/store"
	"github.com/gorun/gorun/env/testing/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testkit.OwnSettings(m)) }

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) func() store.Store {
		server := listen(t, "secret")
		return func() store.Store { return dial(t, server, "secret") }
	})
}

// listen starts a server on a free port of this machine.
func listen(t *testing.T, token string) *tcpstore.Server {
	t.Helper()
	return listenWith(t, tcpstore.Config{Token: []byte(token)})
}

func listenWith(t *testing.T, config tcpstore.Config) *tcpstore.Server {
	t.Helper()
	server, err := tcpstore.Listen("127.0.0.1:0", config)
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

func dial(t *testing.T, server *tcpstore.Server, token string) *tcpstore.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := tcpstore.Dial(ctx, server.Addr(), tcpstore.Config{Token: []byte(token)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}
