package tcpstore

import (
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/env/testing/hosttest"
)

// TestRoundTrip: it is that of the network, however long the server takes to answer, with TLS and without.
func TestRoundTrip(t *testing.T) {
	const d = 5 * time.Millisecond // of a packet on one of the two links
	for name, tls := range map[string]bool{"plain": false, "TLS": true} {
		t.Run(name, func(t *testing.T) {
			w := hosttest.New(t, 2)
			cfg := Config{Token: []byte("a secret that nobody guesses, of some length"), TLS: tls}
			var server *Server
			var err error
			w.Host(0).Do(func() { server, err = Listen(w.Host(0).Addr+":0", cfg) })
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			for _, far := range []bool{false, true} {
				if far {
					w.Delay(1, d)
				}
				var client *Client
				w.Host(1).Do(func() { client, err = Dial(t.Context(), server.Addr(), cfg) })
				if err != nil {
					t.Fatal(err)
				}
				if err := client.Set(t.Context(), "key", nil); err != nil {
					t.Error(err)
				}
				if trip := client.RoundTrip(); trip <= 0 || far != (trip >= 2*d) {
					t.Errorf("far away: %t, and a round trip takes %v", far, trip)
				}
				_ = client.Close()
			}
		})
	}
}

// TestRoundTripThatIsNotMeasured: no packet of a connection has been acknowledged.
func TestRoundTripThatIsNotMeasured(t *testing.T) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "socket")
	conn, err := net.FileConn(f)
	_ = f.Close()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if trip := (&Client{conn: conn}).RoundTrip(); trip != 0 {
		t.Errorf("a round trip takes %v", trip)
	}
}
