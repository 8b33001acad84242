// Package porttest reserves TCP ports for what tests start.
package porttest

import (
	"fmt"
	"testing"

	"github.com/gorun/gorun/env/ports"
)

// Pair returns a port that is reserved until the test ends, as is the next one, on all addresses.
func Pair(t testing.TB) int {
	t.Helper()
	first, next, err := ports.ReservePair("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = first.Close(), next.Close() })
	return first.Number()
}

// Addr returns a loopback address, host:port, whose port is reserved until the test ends.
func Addr(t testing.TB) string {
	t.Helper()
	return fmt.Sprint("127.0.0.1:", Pair(t))
}
