package hosttest

import (
	"io"
	"net"
	"testing"
	"time"
)

// TestSplit: what crosses the core takes the core's time, and what stays at a switch does not.
func TestSplit(t *testing.T) {
	t.Parallel()
	const rate, burst, bytes = 8e6, 64 << 10, 1 << 20 // a byte takes a microsecond
	w := New(t, 4)
	w.Split(2, "8mbit", burst)
	for _, c := range []struct {
		from, to int
		crosses  bool
	}{{0, 1, false}, {2, 3, false}, {0, 2, true}, {3, 1, true}} {
		took := w.send(t, c.from, c.to, bytes)
		if least := time.Duration((bytes - 2*burst) / (rate / 8) * float64(time.Second)); c.crosses != (took > least) {
			t.Errorf("from %d to %d: %v; the core needs %v", c.from, c.to, took, least)
		}
	}
}

// send returns how long n bytes take from one host to another.
func (w *Network) send(t *testing.T, from, to, n int) time.Duration {
	t.Helper()
	var l net.Listener
	var c net.Conn
	var err error
	w.Host(to).Do(func() { l, err = net.Listen("tcp", net.JoinHostPort(w.Host(to).Addr, "0")) })
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	w.Host(from).Do(func() { c, err = net.Dial("tcp", l.Addr().String()) })
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	other, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	begun := time.Now()
	go func() { _, _ = c.Write(make([]byte, n)) }()
	if _, err := io.ReadFull(other, make([]byte, n)); err != nil {
		t.Fatal(err)
	}
	return time.Since(begun)
}
