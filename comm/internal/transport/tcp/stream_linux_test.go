package tcp

import (
	"bytes"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// joined are the two ends of a connection.
func joined(t *testing.T) (a, b *stream) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	dialled, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*stream
	for i, c := range []net.Conn{dialled, accepted} {
		s, err := pollableBundle{newBundle([]*net.TCPConn{c.(*net.TCPConn)}, stripe)}.Stream()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		ends[i] = s.(*stream)
	}
	return ends[0], ends[1]
}

// packets is how many with data s has sent.
func packets(t *testing.T, s *stream) int {
	info, err := unix.GetsockoptTCPInfo(s.fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		t.Fatal(err)
	}
	return int(info.Data_segs_out)
}

func TestShortWritesGatherUntilThoseBeforeAreRead(t *testing.T) {
	for name, release := range map[string]func(a, b *stream){
		"until it ends":               func(a, _ *stream) { a.Coalesce(false) },
		"until the other side is due": func(_, b *stream) { b.Acknowledge() },
	} {
		t.Run(name, func(t *testing.T) {
			const writes = 100
			a, b := joined(t)
			if a.CoalesceLimit() != loopbackLimit {
				t.Errorf("on loopback, writes of up to %d bytes are held back", a.CoalesceLimit())
			}
			a.Coalesce(true)
			var sent, got []byte
			for i := range byte(writes) {
				if n, err := a.TryWrite([][]byte{{i}, {i}}); n != 2 || err != nil {
					t.Fatal(n, err)
				}
				sent = append(sent, i, i)
			}
			buf := make([]byte, len(sent))
			for begun := time.Now(); len(got) < len(sent); {
				n, err := b.TryRead(buf)
				if err != nil || time.Since(begun) > time.Minute {
					t.Fatalf("%d of %d bytes have come, %v", len(got), len(sent), err)
				}
				got = append(got, buf[:n]...)
				release(a, b)
			}
			if !bytes.Equal(got, sent) {
				t.Errorf("%v arrived as %v", sent, got)
			}
			if n := packets(t, a); n > writes/2 {
				t.Errorf("%d writes went in %d packets", writes, n)
			}
		})
	}
}
