package liveness

import (
	"bufio"
	"errors"
	"net"
	"testing"

	"github.com/gorun/gorun/env/auth"
)

// TestControl: who holds the secret has a connection to the process itself; nobody else has, and what is said cannot be read.
func TestControl(t *testing.T) {
	long := []byte("0123456789abcdef of the job")
	taken := make(chan net.Conn, 1)
	p := start(t, "p", func(c *Config) { c.Secret, c.Control = long, func(conn net.Conn) { taken <- conn } })
	addr := p.listener.Addr().String()
	conn, err := connect(t, addr, long, "p", taken)
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || line != "welcome\n" {
		t.Errorf("%q, %v", line, err)
	}
	if _, err := Dial(t.Context(), []byte("another secret of 27 bytes."), "p", addr); !errors.Is(err, auth.ErrWrongToken) {
		t.Errorf("with another secret: %v", err)
	}
	if _, err := Dial(t.Context(), long, "q", addr); err == nil {
		t.Error("another process was meant")
	}
	q := start(t, "q", func(c *Config) { c.Secret = long })
	if _, err := Dial(t.Context(), long, "q", q.listener.Addr().String()); err == nil {
		t.Error("a process that takes no such connections has taken one")
	}
	if p.Connected("") {
		t.Error("the connection counts as one of another process")
	}
}

// connect dials, while the other end says welcome.
func connect(t *testing.T, addr string, secret []byte, key string, taken <-chan net.Conn) (net.Conn, error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn := <-taken
		t.Cleanup(func() { _ = conn.Close() })
		_, _ = conn.Write([]byte("welcome\n")) // the reader finds out
	}()
	conn, err := Dial(t.Context(), secret, key, addr)
	if err == nil {
		t.Cleanup(func() { _ = conn.Close() })
		<-done
	}
	return conn, err
}
