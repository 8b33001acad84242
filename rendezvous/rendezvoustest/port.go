package rendezvoustest

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// FreePort is a port of host, an address of this machine, on which nobody listens. It stays free for what the test wants to
// start there: it is none of those that the system gives away.
func FreePort(t testing.TB, host string) int {
	t.Helper()
	var err error
	for range 100 {
		port := 10000 + rand.IntN(20000)
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port))); err == nil {
			_ = l.Close()
			return port
		}
	}
	t.Fatalf("no port of %s is free: %v", host, err)
	return 0
}
