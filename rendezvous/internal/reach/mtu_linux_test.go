package reach

import (
	"net"
	"strings"
	"testing"

	"github.com/gorun/gorun/env/testing/hosttest"
)

// TestSilentBehindJumboFrames: a machine that sends longer packets than those of Ethernet may be told nothing because of that.
func TestSilentBehindJumboFrames(t *testing.T) {
	t.Parallel()
	w := hosttest.New(t, 2)
	for i := range 2 {
		w.Run(i, "ip link set eth0 mtu 9000")
	}
	var conn net.Conn
	var err error
	w.Host(1).Do(func() {
		var l net.Listener
		if l, err = net.Listen("tcp", w.Host(1).Addr+":0"); err == nil {
			t.Cleanup(func() { _ = l.Close() })
			w.Host(0).Do(func() { conn, err = net.Dial("tcp", l.Addr().String()) })
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	const hint = "a switch on the way drops long packets: this machine sends up to 9000 bytes"
	for bytes, want := range map[int]bool{mtu(conn): true, 0: false, ethernetMTU: false, 65536: false} {
		if got := strings.Contains(silent(bytes).Error(), hint); got != want {
			t.Errorf("%d bytes: %t", bytes, got)
		}
	}
}
