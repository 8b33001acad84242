package near

import (
	"errors"
	"log/slog"
	"net"
	"testing"

	"go.uber.org/goleak"

	"github.com/gorun/gorun/comm/internal/shm/acceptor"
	"github.com/gorun/gorun/comm/internal/testing/transporttest"
	"github.com/gorun/gorun/comm/internal/transport"
	"github.com/gorun/gorun/env/testing/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world makes the transports of ranks that are near, of which tweak may change the configurations.
func world(t *testing.T, size int, tweak func(rank int, cfg *Config)) []transport.Transport {
	acceptors, addresses := make([]*acceptor.Acceptor, size), make([]string, size)
	for r := range acceptors {
		a, err := acceptor.Listen([]byte("secret"), slog.New(slog.DiscardHandler))
		if err != nil {
			testkit.Cannot(t, "%v", err)
		}
		t.Cleanup(func() {
			if err := a.Close(); err != nil {
				t.Error(err)
			}
		})
		acceptors[r], addresses[r] = a, a.Address()
	}
	network, trs := transporttest.NewNetwork(size), make([]transport.Transport, size)
	for r := range trs {
		cfg := Config{World: 7, Rank: r, Peers: addresses, Token: []byte("secret"), OnFallback: func(err error) error { return err }}
		if tweak != nil {
			tweak(r, &cfg)
		}
		trs[r] = New(acceptors[r], network.Transport(r), cfg)
	}
	return trs
}

func TestConformance(t *testing.T) {
	transporttest.Run(t, func(t *testing.T, size int) []transport.Transport { return world(t, size, nil) })
}

// Where there is no memory ranks are as far from each other as all others, if they may.
func TestWithoutMemory(t *testing.T) {
	for name, tweak := range map[string]func(rank int, cfg *Config){
		"wrong token": func(r int, cfg *Config) { cfg.Token = []byte{byte(r)} },
		"other world": func(r int, cfg *Config) { cfg.World = uint64(r) },
		"nobody there": func(_ int, cfg *Config) {
			cfg.Peers = []string{"@gorun-nobody", "@gorun-nobody", "@gorun-nobody", "@gorun-nobody", "@gorun-nobody"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			said := make(chan error, 100)
			transporttest.Run(t, func(t *testing.T, size int) []transport.Transport {
				return world(t, size, func(r int, cfg *Config) {
					tweak(r, cfg)
					cfg.Peers = cfg.Peers[:size]
					cfg.OnFallback = func(reason error) error { said <- reason; return nil }
				})
			})
			select {
			case reason := <-said:
				t.Log(reason)
			default:
				t.Error("nobody said so")
			}
		})
	}
	t.Run("refused", func(t *testing.T) {
		no := errors.New("no")
		trs := world(t, 2, func(_ int, cfg *Config) {
			cfg.World, cfg.OnFallback = uint64(cfg.Rank), func(error) error { return no }
		})
		trs[1].Serve(nobody{})
		if _, err := trs[0].Dial(t.Context(), 1); !errors.Is(err, no) {
			t.Errorf("got %v", err)
		}
		for _, tr := range trs {
			if err := tr.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// nobody admits everybody and hangs up.
type nobody struct{}

func (nobody) Admit(int) bool { return true }
func (nobody) Connected(_ int, conn net.Conn) {
	if conn != nil {
		_ = conn.Close()
	}
}
