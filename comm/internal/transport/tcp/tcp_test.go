package tcp

import (
	"errors"
	"flag"
	"io"
	"net"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/gorun/gorun/comm/internal/testing/transporttest"
	"github.com/gorun/gorun/comm/internal/transport"
	"github.com/gorun/gorun/env/auth"
	"github.com/gorun/gorun/env/testing/testkit"
)

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", "5") // all parallel tests but one only wait
	goleak.VerifyTestMain(m)
}

// world makes transports whose configurations tweak may change before they listen.
func world(t *testing.T, size int, tweak func(rank int, cfg *Config)) []transport.Transport {
	lns, addrs := make([]net.Listener, size), make([]string, size)
	for r := range lns {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		lns[r], addrs[r] = ln, ln.Addr().String()
	}
	trs := make([]transport.Transport, size)
	for r := range trs {
		cfg := Config{World: 7, Rank: r, Peers: addrs, Token: []byte("secret")}
		if tweak != nil {
			tweak(r, &cfg)
		}
		trs[r] = New(lns[r], cfg)
	}
	return trs
}

func TestConformance(t *testing.T) {
	transporttest.Run(t, func(t *testing.T, size int) []transport.Transport { return world(t, size, nil) })
}

type rejecting struct{ t *testing.T }

func (r rejecting) Admit(rank int) bool            { r.t.Errorf("rank %d was let in", rank); return true }
func (r rejecting) Connected(_ int, conn net.Conn) { _ = conn.Close() }

func TestOutsidersAreTurnedAway(t *testing.T) {
	for name, c := range map[string]struct {
		tweak func(rank int, cfg *Config)
		want  string
	}{
		"wrong token":   {func(r int, cfg *Config) { cfg.Token = []byte{byte(r)} }, auth.ErrWrongToken.Error()},
		"other world":   {func(r int, cfg *Config) { cfg.World = uint64(r) }, "belongs to another world"},
		"wrong address": {func(r int, cfg *Config) { cfg.Peers = []string{cfg.Peers[1], cfg.Peers[1], cfg.Peers[1]} }, "looks for rank 2, this is rank 1"},
		"same rank":     {func(_ int, cfg *Config) { cfg.Rank = 1 }, "calls itself rank 1 of 3"},
	} {
		t.Run(name, func(t *testing.T) {
			trs := world(t, 3, c.tweak)
			trs[1].Serve(rejecting{t})
			to := 1
			if name == "wrong address" {
				to = 2
			}
			_, err := trs[0].Dial(t.Context(), to)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			for _, tr := range trs {
				if err := tr.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// Strangers of one kind have one line, and then a number. Who hangs up without a word is none.
func TestAStrangerIsLoggedAndDisturbsNobody(t *testing.T) {
	log := &testkit.Log{}
	trs := world(t, 2, func(_ int, cfg *Config) { cfg.Log = log.Logger() })
	trs[1].Serve(rejecting{t})
	for _, say := range []string{"GET / HTTP/1.1\r\nHost: you\r\n\r\n", "", strings.Repeat("\xff", 1000)} {
		c, err := net.Dial("tcp", trs[1].(*Transport).cfg.Peers[1])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, say); err != nil {
			t.Fatal(err)
		}
		if err := c.(*net.TCPConn).CloseWrite(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Logf("close: %v", err)
		}
		if _, err := io.Copy(io.Discard, c); err != nil {
			t.Logf("the stranger saw: %v", err) // a reset, when it is cut off with bytes unread
		}
		_ = c.Close()
	}
	for _, tr := range trs {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	}
	if text := log.String(); strings.Count(text, "turned away a connection") != 1 || !strings.Contains(text, "turned away more connections\" rank=1 number=1 ") {
		t.Errorf("the log says of two strangers:\n%s", text)
	}
}
