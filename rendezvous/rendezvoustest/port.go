package rendezvoustest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
)

// FreePort is FindPort, but fails the test if there is none.
func FreePort(t testing.TB, host string) int {
	t.Helper()
	port, err := FindPort(host)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// FindPort returns a port of host, an address of this machine. Nobody listens on it or on the next one. Both stay free for what the
// caller wants to start there: the system does not assign them to anybody, and FindPort gives them to no other caller in this
// process.
func FindPort(host string) (int, error) {
	err := errors.New("all have been given away")
	for range 100 {
		port := 10000 + 2*rand.IntN(10000)
		if _, used := taken.LoadOrStore(port, true); used {
			continue
		}
		if err = errors.Join(try(host, port), try(host, port+1)); err == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no port of %s is free: %w", host, err)
}

var taken sync.Map // ports that FindPort has tried or returned

// try listens for a moment.
func try(host string, port int) error {
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return err
	}
	return l.Close()
}
