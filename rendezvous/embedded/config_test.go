package embedded

import (
	"errors"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/gorun/gorun/rendezvous"
)

// TestRefusals: what is refused leaves no listener and no file.
func TestRefusals(t *testing.T) {
	here := func(port int) rendezvous.Endpoint { return rendezvous.Endpoint{Host: "127.0.0.1", Port: port} }
	for name, c := range map[string]struct {
		change func(t *testing.T, c *Config)
		want   string
	}{
		"two endpoints": {
			func(_ *testing.T, c *Config) { c.Members = []rendezvous.Endpoint{c.Self, here(1)} },
			"2 endpoints: want one, or three of which any one may fail",
		},
		"not a member": {
			func(_ *testing.T, c *Config) { c.Members = []rendezvous.Endpoint{here(1)} },
			"is none of the rendezvous's",
		},
		"ports too near": {
			func(_ *testing.T, c *Config) { c.Members = []rendezvous.Endpoint{c.Self, here(80), here(81)} },
			"endpoints 127.0.0.1:80 and 127.0.0.1:81: want ports further apart, since the members of the cluster use the next port",
		},
		"port too high": {
			func(_ *testing.T, c *Config) { c.Members = []rendezvous.Endpoint{c.Self, here(80), here(65535)} },
			"endpoint 127.0.0.1:65535: want a port below 65535, since the members of the cluster use the next port",
		},
		"short secret": {
			func(_ *testing.T, c *Config) { c.Secret = secret[:15] },
			"the token has 15 bytes: want at least 16",
		},
		"two kinds of credentials": {
			func(_ *testing.T, c *Config) { c.Secret, c.Files = secret, &Files{} },
			"both a token file and certificates: want only one of them",
		},
		"no such certificate": {
			func(_ *testing.T, c *Config) { c.Files = &Files{CA: "none.pem", Cert: "none.pem", Key: "none.pem"} },
			"open none.pem: no such file or directory",
		},
		"everybody": {
			func(t *testing.T, c *Config) {
				c.Listeners[0].Close()
				c.Listeners[0], _ = listen(t, "0.0.0.0")
			},
			"to everybody: give every node the same secret with --rdzv-token-file",
		},
	} {
		t.Run(name, func(t *testing.T) {
			config := alone1(t)
			c.change(t, &config)
			s, err := Start(bounded(t), config)
			if err == nil {
				leave(t, s)
				t.Fatal("it has started")
			}
			if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %q; want %q in it", err, c.want)
			}
			if _, err := config.Listeners[0].Accept(); !errors.Is(err, net.ErrClosed) {
				t.Errorf("the listener is not closed: %v", err)
			}
			if left, err := os.ReadDir(config.TempDir); err != nil || len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}
