package tcp

import (
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/env/testing/testkit"
)

// controlOf returns the congestion control of a connection.
func controlOf(t *testing.T, c net.Conn) (name string) {
	t.Helper()
	control(c.(*net.TCPConn), func(fd int) { name = congestionControl(fd) })
	if name == "" {
		t.Fatal("it is not known")
	}
	return name
}

// Where the system chooses BBR, a connection has begun without it on both sides, and gets it only if the round trip is
// long.
func TestWithoutBBR(t *testing.T) {
	withBBR := func(_, _ string, c syscall.RawConn) (err error) {
		failed := c.Control(func(fd uintptr) { err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, bbr) })
		return errors.Join(err, failed)
	}
	bbrAsDefault := func(network, address string, c syscall.RawConn) error {
		return errors.Join(withBBR(network, address, c), WithoutBBR(network, address, c))
	}
	if ln, err := (&net.ListenConfig{Control: withBBR}).Listen(t.Context(), "tcp", "127.0.0.1:0"); err != nil {
		testkit.Cannot(t, "this kernel has no BBR: %v", err)
	} else {
		_ = ln.Close()
	}
	ln, err := (&net.ListenConfig{Control: bbrAsDefault}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	dialled, err := (&net.Dialer{Control: bbrAsDefault}).DialContext(t.Context(), "tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = dialled.Close(), accepted.Close() }()
	for side, c := range map[string]net.Conn{"dialled": dialled, "accepted": accepted} {
		if name := controlOf(t, c); name == bbr {
			t.Errorf("the %s connection has begun with BBR", side)
		}
		for _, step := range []struct {
			short time.Duration
			bbr   bool
		}{{time.Hour, false}, {-time.Microsecond, true}, {time.Hour, false}} {
			if chooseControl(c.(*net.TCPConn), step.short); (controlOf(t, c) == bbr) != step.bbr {
				t.Errorf("the %s connection has %s where round trips of %v are short", side, controlOf(t, c), step.short)
			}
		}
	}
}
