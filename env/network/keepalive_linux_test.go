package network

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The keepalive probes take Limit together. What is sent waits for Limit at most, to another machine; to this one there is no limit.
func TestSet(t *testing.T) {
	for _, far := range []bool{false, true} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ln.Close() })
		conn, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		KeepAlive(conn, far)
		raw, err := conn.(*net.TCPConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		get := func(option int) (n int) {
			if err := raw.Control(func(fd uintptr) { n, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, option) }); err != nil {
				t.Fatal(err)
			}
			return n
		}
		probed := get(unix.TCP_KEEPIDLE) + get(unix.TCP_KEEPINTVL)*get(unix.TCP_KEEPCNT)
		if d := time.Duration(probed) * time.Second; d != KeepAliveLimit {
			t.Errorf("far %t: probes take %v, want %v", far, d, KeepAliveLimit)
		}
		want := map[bool]int{true: int(KeepAliveLimit.Milliseconds())}[far]
		if got := get(unix.TCP_USER_TIMEOUT); got != want {
			t.Errorf("far %t: what is sent waits %d ms, want %d", far, got, want)
		}
	}
}
