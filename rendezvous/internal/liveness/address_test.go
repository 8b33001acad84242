package liveness

import (
	"errors"
	"net"
	"strconv"
	"syscall"
	"testing"
)

// TestListensWhereItIsCalled: a Detector listens at the address that the others are told, and at no other.
func TestListensWhereItIsCalled(t *testing.T) {
	t.Parallel()
	own := []string{"127.0.0.2", "localhost"}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			own = append(own, n.IP.String())
		}
	}
	reach := func(host string, e *Detector) error {
		c, err := net.Dial("tcp", net.JoinHostPort(host, strconv.Itoa(e.Port())))
		if err == nil {
			_ = c.Close()
		}
		return err
	}
	for _, host := range own {
		e := start(t, host, func(c *Config) { c.Host = host }).Detector
		if err := reach(host, e); err != nil {
			t.Errorf("at %s: %v", host, err)
		}
		if err := reach("127.0.0.3", e); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("who is to be called %s answers at another address: %v", host, err)
		}
	}
	for _, host := range []string{"", "192.0.2.77", "nowhere.invalid"} { // not this machine's: translated, as a rule
		e := start(t, host, func(c *Config) { c.Host = host }).Detector
		if err := reach("127.0.0.3", e); err != nil {
			t.Errorf("called %q: %v", host, err)
		}
	}
}
