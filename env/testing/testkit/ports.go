package testkit

import (
	"fmt"
	"testing"

	"github.com/gorun/gorun/env/network"
)

// ReservedPort returns a port that is reserved until the test ends, as is the next one, on all addresses.
func ReservedPort(t testing.TB) int {
	t.Helper()
	first, next, err := network.ReservePortPair("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = first.Close(), next.Close() })
	return first.Number()
}

// ReservedAddr returns a loopback address, host:port, whose port is reserved until the test ends.
func ReservedAddr(t testing.TB) string {
	t.Helper()
	return fmt.Sprint("127.0.0.1:", ReservedPort(t))
}
