package reach_test

import (
	"net"
	"syscall"
	"testing"

	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/internal/reach"
)

// TestDiagnoseUnreachable: a machine that does not answer is one whose listener has more to accept than it may have.
func TestDiagnoseUnreachable(t *testing.T) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	at, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	e := rendezvous.Endpoint{Host: "127.0.0.1", Port: at.(*syscall.SockaddrInet4).Port}
	first, err := net.Dial("tcp", e.String()) // takes the only place
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	expect(t, reach.Target{Endpoints: []rendezvous.Endpoint{e}}, reach.Unreachable, `: no answer: that machine is down, or a firewall blocks the connection$`)
}
