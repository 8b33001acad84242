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

// FreePort is FindPort for a test.
func FreePort(t testing.TB, host string) int {
	t.Helper()
	port, err := FindPort(host)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// FindPort returns a port of host, an address of this machine, on which nobody listens, nor on the next one. They stay free for
// what the caller wants to start there: they are none of those that the system gives away, nor of those that other callers in
// this process have got.
func FindPort(host string) (int, error) {
	err := errors.New("all have been given away")
	for range 100 {
		port := 10000 + 2*rand.IntN(10000)
		if _, taken := given.LoadOrStore(port, true); taken {
			continue
		}
		if err = errors.Join(try(host, port), try(host, port+1)); err == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no port of %s is free: %w", host, err)
}

var given sync.Map // ports

// try listens for a moment.
func try(host string, port int) error {
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return err
	}
	return l.Close()
}
