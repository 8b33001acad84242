package bootstrap

import (
	"errors"
	"net"
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
	var last string
	for range 2 { // the second time, ranks have not agreed on the first one
		at, err := new(Config).reserveAddress(t.Context(), &place{size: 2, here: 2})
		if err != nil || at == last {
			t.Fatal(at, err)
		}
		last = at
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
