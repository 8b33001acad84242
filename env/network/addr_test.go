package network

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func addrs(texts ...string) (list []netip.Addr) {
	for _, t := range texts {
		list = append(list, netip.MustParseAddr(t))
	}
	return list
}

// aMachine has names, interfaces and, if route is an address, a default route.
func aMachine(route string, list ...Interface) machine {
	names := map[string][]netip.Addr{
		"localhost": addrs("127.0.0.1"), "self": addrs("127.0.1.1"), "both": addrs("127.0.1.1", "10.0.0.5"), "other": addrs("10.0.0.6"),
	}
	return machine{
		interfaces: func() ([]Interface, error) { return list, nil },
		lookup: func(_ context.Context, _, host string) ([]netip.Addr, error) {
			if found := names[host]; found != nil {
				return found, nil
			}
			return nil, errors.New("no such host")
		},
		source: func(context.Context, string) (netip.Addr, error) {
			a, err := netip.ParseAddr(route)
			return a, err
		},
	}
}

var (
	lo     = Interface{Name: "lo", Addrs: addrs("127.0.0.1", "::1"), Up: true, Loopback: true}
	docker = Interface{Name: "docker0", Addrs: addrs("172.17.0.1"), Up: true, Containers: true}
	eth0   = Interface{Name: "eth0", Addrs: addrs("fd00::5", "10.0.0.5", "10.0.0.55"), Up: true}
	ib0    = Interface{Name: "ib0", Addrs: addrs("10.1.0.5"), Up: true}
	eth2   = Interface{Name: "eth2", Addrs: addrs("10.2.0.5")} // is down
	bare   = Interface{Name: "bare", Up: true}
)

func TestChoose(t *testing.T) {
	m := aMachine("", lo, docker, eth0, ib0, eth2, bare)
	const has = "; this machine has 127.0.0.1 (lo), ::1 (lo), 172.17.0.1 (docker0), fd00::5 (eth0), 10.0.0.5 (eth0), 10.0.0.55 (eth0), 10.1.0.5 (ib0), 10.2.0.5 (eth2)"
	for choice, want := range map[string]string{
		"eth0": "10.0.0.5", "docker0": "172.17.0.1", "lo": "127.0.0.1", "10.0.0.55": "10.0.0.55", "::ffff:10.0.0.5": "10.0.0.5", "127.0.0.1": "127.0.0.1",
		"10.1.0.0/16": "10.1.0.5", "10.0.0.9/24": "10.0.0.5", "fd00::/8": "fd00::5", "localhost": "127.0.0.1", "both": "10.0.0.5",
		"eth2":           "interface eth2 is down" + has,
		"bare":           "interface bare has no address that others could reach" + has,
		"10.0.0.6":       "10.0.0.6 is not an address of this machine" + has,
		"10.0.0.0/8":     "10.0.0.0/8 means 10.0.0.5 of interface eth0 and 10.1.0.5 of ib0: want one of them" + has,
		"10.2.0.0/16":    "10.2.0.0/16 contains no address of this machine" + has,
		"192.168.0.0/16": "192.168.0.0/16 contains no address of this machine" + has,
		"10.1/16":        `"10.1/16" is not a prefix such as 10.1.0.0/16` + has,
		"self":           "self means [127.0.1.1] here, which no other machine can reach" + has,
		"other":          "other means [10.0.0.6], which is another machine" + has,
		"eth7":           `"eth7" is not an interface, and cannot be looked up as a name (no such host)` + has,
	} {
		found, err := m.choose(t.Context(), choice)
		got := found.String()
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", choice, got, want)
		}
	}
	if _, err := aMachine("").choose(t.Context(), "10.0.0.5"); err == nil || !strings.HasSuffix(err.Error(), "this machine has no address") {
		t.Errorf("a machine without any: %v", err)
	}
}

func TestOutward(t *testing.T) {
	for _, c := range []struct {
		what, want, doubt string
		m                 machine
	}{
		{"the default route's", "10.1.0.5", "", aMachine("10.1.0.5", lo, eth0, ib0)},
		{"the only one", "10.0.0.5", "", aMachine("", lo, docker, eth0, eth2, bare)},
		{"the first of several", "10.0.0.5", "10.1.0.5 (ib0): took the first", aMachine("", lo, docker, eth0, ib0)},
		{"none", "127.0.0.1", "no address but loopback", aMachine("", lo, docker, eth2)},
		{"none, of IPv6", "::1", "no address but loopback", aMachine("", Interface{Name: "lo", Addrs: addrs("::1"), Up: true, Loopback: true})},
		{"a default route of loopback", "10.0.0.5", "", aMachine("127.0.0.1", lo, eth0)},
	} {
		found, doubt, err := c.m.outward(t.Context())
		if err != nil || found.String() != c.want || (doubt == "") != (c.doubt == "") || !strings.Contains(doubt, c.doubt) {
			t.Errorf("%s: got %v, %q, %v, want %s, %q", c.what, found, doubt, err, c.want, c.doubt)
		}
	}
}

// What an interface leads to is what the system says of its ends; names count where it says nothing.
func TestLeadsToContainers(t *testing.T) {
	class := t.TempDir()
	for _, dir := range []string{
		"eth0/device", "eth0.7/lower_eth0", "veth1", "tap0",
		"docker0/bridge", "docker0/brif/veth1", "br-3f2a/bridge", "br-3f2a/brif/veth1", "empty/bridge",
		"br0/bridge", "br0/brif/veth1", "br0/brif/eth0", "br1/bridge", "br1/brif/tap0", "br1/brif/eth0.7", "br-ex/bridge", "br-ex/brif/eth0",
	} {
		if err := os.MkdirAll(filepath.Join(class, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]bool{
		"eth0": false, "eth0.7": false, "veth1": true, "tap0": false, "docker0": true, "br-3f2a": true, "empty": true,
		"br0": false, "br1": false, "br-ex": false, "virbr0": true, "cni0": true, "wlan0": false,
	} {
		if got := leadsToContainers(class, name); got != want {
			t.Errorf("%s leads to containers: %t", name, got)
		}
	}
}

// What this machine says of itself fits together.
func TestThisMachine(t *testing.T) {
	list, err := interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range list {
		for _, a := range i.Addrs {
			if found, err := ChooseAddr(t.Context(), a.String()); err != nil || found != a {
				t.Errorf("%v: got %v, %v", a, found, err)
			}
		}
		if !IsInterface(i.Name) {
			t.Errorf("%s is no interface", i.Name)
		}
	}
	if IsInterface("no such") {
		t.Error("there is an interface of any name")
	}
	if a, err := FacingAddr(t.Context(), "127.0.0.1"); err != nil || !a.IsLoopback() {
		t.Errorf("loopback is faced from %v, %v", a, err)
	}
	if a, _, err := OutwardAddr(t.Context()); err != nil || !has(list, a) {
		t.Errorf("outward is %v, %v", a, err)
	}
}
