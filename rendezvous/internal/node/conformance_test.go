package node

import (
	"strings"
	"testing"

	"github.com/gorun/gorun/env/network"
	"github.com/gorun/gorun/env/testing/testkit"
	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/internal/testing/rendezvoustest"
)

func reserve(_ string, number int) (rendezvous.Port, error) { return network.ReservePort("", number) }

func TestConformance(t *testing.T) {
	t.Parallel()
	client := startServer(t).client()
	for name, port := range map[string]int{"any port": 0, "a fixed port": testkit.ReservedPort(t)} {
		t.Run(name, func(t *testing.T) {
			rendezvoustest.Run(t, func(t *testing.T, maxRestarts int) rendezvous.Rendezvous {
				r, err := New(Config{
					Store: client, Config: rendezvous.Config{
						RunID: strings.ReplaceAll(t.Name(), "/", " "), Rules: rendezvous.Rules{Min: 1, Max: 1, MaxRestarts: maxRestarts},
						MasterPort: port, Reserve: reserve,
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				return r
			})
		})
	}
}
