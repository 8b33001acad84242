package network_test

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/gorun/gorun/env/network"
	"github.com/gorun/gorun/env/testing/hosttest"
)

// TestWithoutLastingPorts: if outgoing connections may have all ports, or all but the highest, the system chooses.
func TestWithoutLastingPorts(t *testing.T) {
	h := hosttest.New(t, 1).Host(0)
	for _, text := range []string{"1024 65535", "1024 65534", "10000 65535"} {
		var err error
		h.Do(func() { err = reserveTwice(text) })
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// reserveTwice reserves two pairs if outgoing connections have these ports, and tries to claim what is reserved.
func reserveTwice(text string) error {
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_local_port_range", []byte(text), 0o600); err != nil {
		return err
	}
	var held []*network.Port
	defer func() {
		for _, p := range held {
			_ = p.Close()
		}
	}()
	for range 2 {
		first, next, err := network.ReservePortPair("")
		if err != nil {
			return err
		}
		held = append(held, first, next)
		if p, err := network.ClaimPort("", next.Number()); err == nil {
			held = append(held, p)
			return fmt.Errorf("port %d is reserved, and claimed", p.Number())
		} else if !errors.Is(err, syscall.EADDRINUSE) {
			return err
		}
	}
	return nil
}
