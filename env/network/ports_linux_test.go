package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func mustReserve(t *testing.T, host string, port int) *Port {
	t.Helper()
	p, err := ReservePort(host, port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func addr(host string, p *Port) string { return net.JoinHostPort(host, strconv.Itoa(p.Number())) }

func TestReservedPortCanBeListenedOn(t *testing.T) {
	// Rank 0 may bind the address or, as torch does, all of them.
	for _, tt := range []struct{ reserved, network, listened, dialled string }{
		{"127.0.0.1", "tcp", "127.0.0.1", "127.0.0.1"},
		{"localhost", "tcp", "", "127.0.0.1"},
		{"127.0.0.1", "tcp4", "0.0.0.0", "127.0.0.1"},
		{"", "tcp", "", "127.0.0.1"},
		{"", "tcp4", "127.0.0.1", "127.0.0.1"},
		{"::1", "tcp", "", "::1"},
	} {
		t.Run(tt.reserved+" "+tt.network+" "+tt.listened, func(t *testing.T) {
			p, err := ReservePort(tt.reserved, 0)
			if errors.Is(err, syscall.EADDRNOTAVAIL) && tt.reserved == "::1" {
				t.Skip("this machine has no IPv6")
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := net.Dial("tcp", addr(tt.dialled, p)); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("connecting before anybody listens: %v", err)
			}
			l, err := net.Listen(tt.network, addr(tt.listened, p))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = l.Close() }()
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
			c, err := net.Dial("tcp", addr(tt.dialled, p))
			if err != nil {
				t.Fatalf("after the reservation was closed: %v", err)
			}
			_ = c.Close()
		})
	}
}

func TestReservedPortIsNobodyElses(t *testing.T) {
	p := mustReserve(t, "127.0.0.1", 0)
	exclusive := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		ctlErr := c.Control(func(fd uintptr) {
			err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 0)
		})
		return errors.Join(err, ctlErr)
	}}
	if l, err := exclusive.Listen(context.Background(), "tcp", addr("127.0.0.1", p)); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a listener without SO_REUSEADDR got the port: %v, %v", l, err)
	}
	for range 500 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		if l.Addr().(*net.TCPAddr).Port == p.Number() {
			t.Fatal("the system gave the reserved port away")
		}
	}
}

func TestErrors(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	busy := l.Addr().(*net.TCPAddr).Port
	for _, tt := range []struct {
		host string
		port int
		is   error
		want string
	}{
		{"127.0.0.1", busy, syscall.EADDRINUSE,
			"port " + strconv.Itoa(busy) + " on 127.0.0.1 is in use by another process"},
		{"", busy, syscall.EADDRINUSE, "port " + strconv.Itoa(busy) + " on all addresses is in use"},
		{"192.0.2.1", 0, syscall.EADDRNOTAVAIL, "192.0.2.1 is not an address of this machine"},
		{"127.0.0.1", 70000, nil, "cannot reserve port 70000 on 127.0.0.1"},
	} {
		p, err := ReservePort(tt.host, tt.port)
		portErr, ok := errors.AsType[*PortError](err)
		if !ok {
			t.Errorf("%s %d: got %v, %v", tt.host, tt.port, p, err)
			continue
		}
		if !strings.Contains(err.Error(), tt.want) || tt.is != nil && !errors.Is(err, tt.is) || portErr.Port != tt.port {
			t.Errorf("%s %d: %q, want %q", tt.host, tt.port, err, tt.want)
		}
	}
}

// TestANamedPortMayBeReservedAgain: for the next attempt, before the last one's is closed. Each may be closed twice.
func TestANamedPortMayBeReservedAgain(t *testing.T) {
	p := mustReserve(t, "127.0.0.1", 0)
	mustReserve(t, "127.0.0.1", p.Number())
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// TestNothingLeaks: what fails leaves no descriptor, and what a program inherits is none of them.
func TestNothingLeaks(t *testing.T) {
	first, next := pair(t)
	defer func() { _, _ = first.Close(), next.Close() }()
	before := descriptors(t)
	for range 20 {
		for _, err := range []error{failed(ClaimPort("", first.Number())), failed(ReservePort("192.0.2.1", 0)), failed(ReservePort("", 70000))} {
			if err == nil {
				t.Fatal("it is reserved")
			}
		}
		a, b := pair(t)
		_, _ = a.Close(), b.Close()
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
	out, err := exec.CommandContext(t.Context(), "ls", "-l", "/proc/self/fd").CombinedOutput()
	if err != nil || strings.Contains(string(out), "socket:") {
		t.Errorf("a program that is started has %s, %v", out, err)
	}
}

func failed(_ *Port, err error) error { return err }

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

const asOther = "PORTS_TEST_OTHER"

func TestMain(m *testing.M) {
	if os.Getenv(asOther) != "" {
		printPorts()
		return
	}
	os.Exit(m.Run())
}

// printPorts prints many ports that it has reserved for a moment.
func printPorts() {
	for range 5000 {
		first, next, err := ReservePortPair("")
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(first.Number(), next.Number())
		_, _ = first.Close(), next.Close()
	}
}

func pair(t *testing.T) (first, next *Port) {
	t.Helper()
	first, next, err := ReservePortPair("")
	if err != nil {
		t.Fatal(err)
	}
	if first.Number()+1 != next.Number() {
		t.Errorf("%d and %d are no pair", first.Number(), next.Number())
	}
	return first, next
}

// TestPairsAreNobodyElses: nobody else gets a port of a pair, on any address, in this process or another, unless they ask for its number.
func TestPairsAreNobodyElses(t *testing.T) {
	mine := map[int]bool{}
	for range 300 {
		first, next := pair(t)
		for _, p := range []*Port{first, next} {
			t.Cleanup(func() { _ = p.Close() })
			if mine[p.Number()] {
				t.Errorf("port %d is reserved twice", p.Number())
			}
			mine[p.Number()] = true
			for _, host := range []string{"", "127.0.0.1", "127.0.0.2"} {
				if got, err := ClaimPort(host, p.Number()); !errors.Is(err, syscall.EADDRINUSE) {
					t.Errorf("port %d, which is reserved, is claimed on %q: %v, %v", p.Number(), host, got, err)
				}
				mustReserve(t, host, p.Number())
			}
		}
	}
	other := exec.CommandContext(t.Context(), os.Args[0])
	other.Env = append(os.Environ(), asOther+"=yes")
	out, err := other.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for text := range strings.FieldsSeq(string(out)) {
		if port, err := strconv.Atoi(text); err != nil || mine[port] {
			t.Errorf("%s is reserved, and another process has reserved it too", text)
		}
	}
}

// TestListenOnAPair: servers can, again and again. Then nobody reserves the port. What is closed can be claimed.
func TestListenOnAPair(t *testing.T) {
	first, next := pair(t)
	for _, p := range []*Port{first, next} {
		for range 2 {
			l, err := net.Listen("tcp", addr("127.0.0.1", p))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := ReservePort("", p.Number()); !errors.Is(err, syscall.EADDRINUSE) {
				t.Errorf("beside a server: %v, %v", got, err)
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		claimed, err := ClaimPort("", p.Number())
		if err != nil {
			t.Fatal(err)
		}
		if err := claimed.Close(); err != nil {
			t.Error(err)
		}
	}
}
