package tcpstore_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/gorun/gorun/comm/internal/store/tcpstore"
	"github.com/gorun/gorun/comm/internal/testing/storetest"
	"github.com/gorun/gorun/comm/store"
)

const longSecret = "a secret of 16 bytes and more"

// remote is the configuration of an end whose connections all lead to other machines.
func remote(token string, tls bool) tcpstore.Config {
	return tcpstore.Config{Token: []byte(token), TLS: tls, Near: func(net.Conn) bool { return false }}
}

// serveRemote starts a server that takes its clients for those of other machines.
func serveRemote(t *testing.T, tls bool) *tcpstore.Server {
	t.Helper()
	return listenWith(t, remote(longSecret, tls))
}

func dialRemote(t *testing.T, addr string, tls bool) *tcpstore.Client {
	t.Helper()
	s, err := tcpstore.Dial(t.Context(), addr, remote(longSecret, tls))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestConformanceOverTLS(t *testing.T) {
	storetest.Run(t, func(t *testing.T) func() store.Store {
		server := serveRemote(t, true)
		return func() store.Store { return dialRemote(t, server.Addr(), true) }
	})
}

// A tap records what passes over a connection, in both directions.
type tap struct {
	mu   sync.Mutex
	seen bytes.Buffer
}

func (p *tap) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen.Write(b)
}

// serve relays one connection from l to addr.
func (p *tap) serve(t *testing.T, l net.Listener, addr string) {
	in, err := l.Accept()
	if err != nil {
		t.Error(err)
		return
	}
	defer in.Close()
	out, err := net.Dial("tcp", addr)
	if err != nil {
		t.Error(err)
		return
	}
	defer out.Close()
	var way sync.WaitGroup
	for _, ends := range [][2]net.Conn{{in, out}, {out, in}} {
		way.Go(func() {
			_, _ = io.Copy(io.MultiWriter(ends[0], p), ends[1])
			_ = ends[0].Close()
		})
	}
	way.Wait()
}

func TestTLSHidesRequestsAndReplies(t *testing.T) {
	for _, tls := range []bool{false, true} {
		server := serveRemote(t, tls)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		wire := &tap{}
		var relay sync.WaitGroup
		relay.Go(func() { wire.serve(t, l, server.Addr()) })
		s := dialRemote(t, l.Addr().String(), tls)
		if err := s.Set(t.Context(), "rank/0", []byte("node-a.example")); err != nil {
			t.Fatal(err)
		}
		if v, err := s.Get(t.Context(), "rank/0"); string(v) != "node-a.example" || err != nil {
			t.Fatalf("got %q, %v", v, err)
		}
		s.Close()
		relay.Wait()
		_ = l.Close()
		if seen := strings.Contains(wire.seen.String(), "node-a.example"); seen == tls {
			t.Errorf("TLS %t: what was set can be read on the way: %t", tls, seen)
		}
	}
}

func TestServerAndClientDisagreeAboutTLS(t *testing.T) {
	for _, tls := range []bool{false, true} {
		server := serveRemote(t, tls)
		_, err := tcpstore.Dial(t.Context(), server.Addr(), remote(longSecret, !tls))
		want := fmt.Sprintf("store at %s refused: its end of this connection has TLS: %t, and the rank's TLS: %t: "+
			"all ranks have WithTLS (gorun: --worker-tls), or none", server.Addr(), tls, !tls)
		if err == nil || err.Error() != want {
			t.Errorf("TLS %t at the store: got %v\nwant %s", tls, err, want)
		}
	}
}

func TestTLSWantsATokenThatCannotBeGuessed(t *testing.T) {
	if _, err := tcpstore.Listen("127.0.0.1:0", remote("short", true)); err == nil {
		t.Error("no error")
	}
}
