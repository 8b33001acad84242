package reach

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/gorun/gorun/env/testing/testkit"
	"github.com/gorun/gorun/rendezvous"
)

// door is a listener that does nothing.
type door struct {
	net.Listener
	at     string
	closed *[]string
}

func (d door) Close() error { *d.closed = append(*d.closed, d.at); return nil }

// TestOwn: which endpoint is whose is decided by addresses, and by whether one can listen at them.
func TestOwn(t *testing.T) {
	hosts := map[string]string{ // as this machine's resolver has them
		"here":       "10.0.0.1",
		"both":       "10.0.0.1 2001:db8::1",
		"there":      "10.0.0.2",
		"debian":     "127.0.1.1",
		"localhost":  "127.0.0.1 ::1",
		"everywhere": "10.0.0.3 10.0.0.1 10.0.0.2",
		"translated": "192.0.2.1",
		"translate6": "2001:db8::ff",
		"no6":        "10.0.0.1 2001:db8::dead",
		"mapped":     "::ffff:10.0.0.1",
	}
	errnos := map[string]error{"10.0.0.1:80": syscall.EADDRINUSE, "[2001:db8::1]:81": syscall.EADDRINUSE, "10.0.0.1:22": syscall.EACCES}
	for _, c := range []struct {
		endpoints string
		insist    bool
		want      string // endpoint and addresses, or the error
		why       string // of the findings
	}{
		{endpoints: "here", want: "here:29400 at 10.0.0.1:29400", why: "here:29400 (10.0.0.1): is here"},
		{endpoints: "10.0.0.1", want: "10.0.0.1:29400 at 10.0.0.1:29400"},
		{endpoints: "mapped", want: "mapped:29400 at 10.0.0.1:29400"},
		{endpoints: "both", want: "both:29400 at 10.0.0.1:29400 [2001:db8::1]:29400"},
		{endpoints: "no6", want: "no6:29400 at 10.0.0.1:29400"},
		{endpoints: "localhost", want: "localhost:29400 at 127.0.0.1:29400 [::1]:29400"},
		{endpoints: "127.0.0.1", want: "127.0.0.1:29400 at 127.0.0.1:29400"},
		{endpoints: "there", want: "none", why: "there:29400 (10.0.0.2): not an address of this machine"},
		{endpoints: "there,here", want: "here:29400 at 10.0.0.1:29400", why: "there:29400 (10.0.0.2): not an address of this machine; here:29400 (10.0.0.1): is here"},
		{endpoints: "here:80", want: "none", why: "here:80 (10.0.0.1): another process of this machine listens there"},
		{endpoints: "here:80,here:82", want: "here:82 at 10.0.0.1:82"},
		{endpoints: "both:81", want: "none", why: "both:81 (10.0.0.1, 2001:db8::1): another process of this machine listens there"},
		{endpoints: "here:22", want: "none", why: "here:22 (10.0.0.1): permission denied"},
		{endpoints: "nowhere", want: "none", why: "nowhere:29400 (): no such host"},
		{endpoints: "nowhere,here", want: "here:29400 at 10.0.0.1:29400"},
		{endpoints: "debian", want: "debian:29400 at 0.0.0.0:29400"},
		{endpoints: "everywhere", want: "endpoint everywhere:29400 means 10.0.0.1, which is this machine, and 10.0.0.2, which is another: " +
			"give the name of one machine, or choose the host with is_host=true in the --rdzv-conf of one node"},
		{endpoints: "everywhere", insist: true, want: "everywhere:29400 at 10.0.0.1:29400"},
		{endpoints: "translated", want: "none"},
		{endpoints: "translated", insist: true, want: "translated:29400 at 0.0.0.0:29400"},
		{endpoints: "translate6", insist: true, want: "translate6:29400 at [::]:29400"},
		{endpoints: "nowhere", insist: true, want: "nowhere:29400 at 0.0.0.0:29400"},
		{endpoints: "there,translated", insist: true, want: "cannot host the rendezvous: " +
			"there:29400 (10.0.0.2): not an address of this machine; translated:29400 (192.0.2.1): not an address of this machine"},
		{endpoints: "there,here", insist: true, want: "here:29400 at 10.0.0.1:29400"},
		{endpoints: "here:80", insist: true, want: "cannot host the rendezvous: here:80 (10.0.0.1): another process of this machine listens there"},
	} {
		var opened, closed []string
		m := machine{
			lookup: func(_ context.Context, _, host string) ([]netip.Addr, error) {
				if a, err := netip.ParseAddr(host); err == nil {
					return []netip.Addr{a}, nil
				}
				var addrs []netip.Addr
				for text := range strings.FieldsSeq(hosts[host]) {
					addrs = append(addrs, netip.MustParseAddr(text))
				}
				if addrs == nil {
					return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
				}
				return addrs, nil
			},
			addrs: func() ([]net.Addr, error) {
				var list []net.Addr
				for _, text := range []string{"127.0.0.1/8", "10.0.0.1/24", "2001:db8::1/64", "2001:db8::dead/64"} {
					ip, n, err := net.ParseCIDR(text)
					list = append(list, &net.IPNet{IP: ip, Mask: n.Mask})
					if err != nil {
						return nil, err
					}
				}
				return list, nil
			},
			listen: func(_ context.Context, at netip.AddrPort) (net.Listener, error) {
				if err := errnos[at.String()]; err != nil {
					return nil, err
				}
				if at.Addr() == netip.MustParseAddr("2001:db8::dead") {
					return nil, syscall.EADDRNOTAVAIL
				}
				opened = append(opened, at.String())
				return door{at: at.String(), closed: &closed}, nil
			},
		}
		endpoints, err := rendezvous.ParseEndpoints(c.endpoints, rendezvous.EmbeddedPort)
		if err != nil {
			t.Fatal(err)
		}
		claim, findings, err := m.own(t.Context(), endpoints, c.insist)
		got := "none"
		var held []string
		if err != nil {
			got = err.Error()
		} else if claim != nil {
			got = claim.Endpoint.String() + " at"
			for _, l := range claim.Listeners {
				held = append(held, l.(door).at)
				got += " " + l.(door).at
			}
		}
		if got != c.want {
			t.Errorf("%s, insist %t:\n got %s\nwant %s", c.endpoints, c.insist, got, c.want)
		}
		if why := join(findings); c.why != "" && why != c.why {
			t.Errorf("%s:\nfound %s\n want %s", c.endpoints, why, c.why)
		}
		if all := slices.Concat(held, closed); !slices.Equal(slices.Sorted(slices.Values(opened)), slices.Sorted(slices.Values(all))) {
			t.Errorf("%s: opened %v, holds %v, closed %v", c.endpoints, opened, held, closed)
		}
	}
}

// TestOwnOfThisMachine: of two that ask for the same endpoint one gets it, and nobody while it is held.
func TestOwnOfThisMachine(t *testing.T) {
	here := rendezvous.Endpoint{Host: "localhost", Port: testkit.ReservedPort(t)}
	claims := make(chan *Claim)
	for range 2 {
		go func() {
			claim, _, err := Own(t.Context(), []rendezvous.Endpoint{here}, false)
			if err != nil {
				t.Error(err)
			}
			claims <- claim
		}()
	}
	a, b := <-claims, <-claims
	if (a == nil) == (b == nil) {
		t.Fatalf("claims %v and %v", a, b)
	}
	if a == nil {
		a = b
	}
	defer func() {
		for _, l := range a.Listeners {
			l.Close()
		}
	}()
	none, findings, err := Own(t.Context(), []rendezvous.Endpoint{here}, false)
	if none != nil || err != nil || !errors.Is(findings[0].Err, ErrTaken) {
		t.Errorf("a third one has %v, %v, %v", none, findings, err)
	}
}
