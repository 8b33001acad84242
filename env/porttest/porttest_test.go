package porttest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
)

const asOther = "PORTTEST_OTHER"

func TestMain(m *testing.M) {
	if port := os.Getenv(asOther); port != "" {
		// Another process has no port of the first one's, even if it tries hard.
		for range 5000 {
			p, err := Reserve(0)
			if err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
			fmt.Println(p.Number())
			_ = p.Close()
		}
		return
	}
	os.Exit(m.Run())
}

func TestReservedPorts(t *testing.T) {
	var mine []string
	for range 300 {
		port := Free(t)
		mine = append(mine, fmt.Sprint(port), fmt.Sprint(port+1))
	}
	slices.Sort(mine)
	if n := len(slices.Compact(slices.Clone(mine))); n != len(mine) {
		t.Fatalf("%d ports are reserved, of which %d differ", len(mine), n)
	}
	other := exec.CommandContext(t.Context(), os.Args[0])
	other.Env = append(os.Environ(), asOther+"=yes")
	out, err := other.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for port := range strings.FieldsSeq(string(out)) {
		if _, found := slices.BinarySearch(mine, port); found {
			t.Errorf("port %s is reserved, and another process has reserved it", port)
		}
	}

	for _, port := range []string{mine[0], mine[1]} {
		addr := "127.0.0.1:" + port
		if _, err := net.Dial("tcp", addr); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("a connection to a reserved port: %v", err)
		}
		for range 2 {
			l, err := net.Listen("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = c.Close(), l.Close()
		}
	}
}

// TestSharedPorts: whoever names a port reserves it beside others, but not beside somebody who listens.
func TestSharedPorts(t *testing.T) {
	port := Free(t)
	p, err := Reserve(port)
	if err != nil || p.Number() != port {
		t.Fatal(p, err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if p, err := Reserve(port); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("beside somebody who listens: %v, %v", p, err)
	}
}
