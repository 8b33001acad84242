package rendezvoustest

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// FreePort is a port of host, an address of this machine, on which nobody listens, nor on the next one. They stay free for
// what the test wants to start there: they are none of those that the system gives away.
func FreePort(t testing.TB, host string) int {
	t.Helper()
	var err error
	for range 100 {
		port := 10000 + rand.IntN(20000)
		if err = errors.Join(try(host, port), try(host, port+1)); err == nil {
			return port
		}
	}
	t.Fatalf("no port of %s is free: %v", host, err)
	return 0
}

// try listens for a moment.
func try(host string, port int) error {
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return err
	}
	return l.Close()
}
