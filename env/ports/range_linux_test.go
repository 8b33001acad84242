package ports

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/gorun/gorun/env/hosttest"
)

// TestReservedPortLasts: two reservations differ, and no outgoing connection can be given such a port.
func TestReservedPortLasts(t *testing.T) {
	text, err := os.ReadFile(portRange)
	if err != nil {
		t.Fatal(err)
	}
	first, count := lastingPorts(string(text))
	const reserved = 200
	if count < 5*reserved {
		t.Skipf("outgoing connections have %s: it may have to let the system choose", text)
	}
	seen := make(map[int]bool)
	for range reserved {
		p := mustReserve(t, "127.0.0.1", 0)
		if n := p.Number(); seen[n] || n < first || n >= first+count {
			t.Fatalf("port %d: reserved before: %t; outgoing connections have %s", n, seen[n], text)
		}
		seen[p.Number()] = true
	}
}

func TestLastingPorts(t *testing.T) {
	for text, want := range map[string][2]int{
		"32768\t60999\n": {10000, 22768}, "": {10000, 22768}, "nonsense": {10000, 22768}, "1024 x": {10000, 22768},
		"1024 29999": {30000, 35535}, "15000 60999": {10000, 5000}, "1024 65533": {65534, 1}, "10001 65535": {10000, 1},
		"1024 5000": {10000, 55535},
	} {
		if first, count := lastingPorts(text); [2]int{first, count} != want {
			t.Errorf("%q: from %d on, %d, want %d", text, first, count, want)
		}
	}
	for _, text := range []string{"1024 65535", "1024 65534", "10000 65535"} {
		if first, count := lastingPorts(text); count != 0 {
			t.Errorf("%q: from %d on, %d", text, first, count)
		}
	}
}

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
	if err := os.WriteFile(portRange, []byte(text), 0o600); err != nil {
		return err
	}
	var held []*Port
	defer func() {
		for _, p := range held {
			_ = p.Close()
		}
	}()
	for range 2 {
		first, next, err := ReservePair("")
		if err != nil {
			return err
		}
		held = append(held, first, next)
		if p, err := Claim("", next.Number()); err == nil {
			held = append(held, p)
			return fmt.Errorf("port %d is reserved, and claimed", p.Number())
		} else if !errors.Is(err, syscall.EADDRINUSE) {
			return err
		}
	}
	return nil
}
