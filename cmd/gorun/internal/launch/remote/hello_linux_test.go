package remote

import (
	"testing"

	"github.com/gorun/gorun/env/testing/hosttest"
)

// TestOwnAddr: where sshd says nothing, as after kubectl exec, the default route does.
func TestOwnAddr(t *testing.T) {
	host := hosttest.New(t, 1)
	want := func(want string, connections ...string) {
		t.Helper()
		for _, connection := range connections {
			var got string
			if host.Host(0).Do(func() { got = ownAddr(connection) }); got != want {
				t.Errorf("%q: %q, want %q", connection, got, want)
			}
		}
	}
	want("10.0.0.1", "10.0.0.9 50000 10.0.0.1 22")
	want("fd00::1", "fd00::9 50000 fd00::1 22")
	want("", "", "x", "a b c")
	host.Run(0, "ip addr add fd79::1/64 dev eth0 nodad && ip -6 route add default dev eth0")
	want("fd79::1", "", "a b c")
	host.Run(0, "ip route add default dev eth0")
	want("10.79.0.1", "", "x")
}
