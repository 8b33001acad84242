package bootstrap

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/gorun/gorun/env/ports"
)

// TestReservedAddress: rank 0 listens there in every Init, and nobody else gets the port meanwhile.
func TestReservedAddress(t *testing.T) {
	defer func() {
		if err := negotiated.reserved.Close(); err != nil {
			t.Error(err)
		}
		negotiated.reserved = nil
	}()
	var first, last string
	for range 2 { // the second time, ranks have not agreed on the first one
		at, err := new(Config).reserveAddress(t.Context(), &place{size: 2, here: 2})
		if err != nil || at == last {
			t.Fatal(at, err)
		}
		first, last = last, at
	}
	for _, free := range []string{first, strings.Replace(last, "127.0.0.1", "127.0.0.2", 1)} { // the first one is given up, the last one of this address only
		host, port, err := net.SplitHostPort(free)
		if err != nil {
			t.Fatal(err)
		}
		number, _ := strconv.Atoi(port)
		claimed, err := ports.Claim(host, number)
		if err != nil {
			t.Errorf("%s is not free: %v", free, err)
			continue
		}
		if err := claimed.Close(); err != nil {
			t.Error(err)
		}
	}
	for range 2 {
		if got, err := ports.Claim("127.0.0.1", negotiated.reserved.Number()); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("somebody else has claimed it: %v, %v", got, err)
		}
		l, err := net.Listen("tcp", last)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}
