package hosttest

import (
	"net"
	"testing"
	"time"
)

// TestDelay: an answer takes at least the delays of both links, there and back.
func TestDelay(t *testing.T) {
	const d = 20 * time.Millisecond
	w := New(t, 2)
	w.Delay(0, d)
	w.Delay(1, d)
	var l net.Listener
	var err error
	w.Host(0).Do(func() { l, err = net.Listen("tcp", net.JoinHostPort(w.Host(0).Addr, "0")) })
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			buf := make([]byte, 1)
			for {
				if _, err := c.Read(buf); err != nil {
					break
				}
				_, _ = c.Write(buf)
			}
		}
	}()
	var c net.Conn
	w.Host(1).Do(func() { c, err = net.Dial("tcp", l.Addr().String()) })
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	least := time.Hour
	for range 5 {
		begun := time.Now()
		if _, err := c.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		least = min(least, time.Since(begun))
	}
	if least < 4*d || least > 8*d {
		t.Errorf("an answer takes %v, want %v", least, 4*d)
	}
}
