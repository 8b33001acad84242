package reach

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/gorun/gorun/rendezvous"
)

// What a Finding's Err may wrap.
var (
	ErrElsewhere = errors.New("not an address of this machine")
	ErrTaken     = errors.New("another process of this machine listens there")
)

// A Finding is what an endpoint is to this machine.
type Finding struct {
	Endpoint rendezvous.Endpoint
	Addrs    []netip.Addr // what its host means here, in order; empty: nothing
	Err      error        // why it is not this process's
}

// String is one line for debugging.
func (f Finding) String() string {
	addrs := make([]string, len(f.Addrs))
	for i, a := range f.Addrs {
		addrs[i] = a.String()
	}
	why := "is here"
	if f.Err != nil {
		why = f.Err.Error()
	}
	return fmt.Sprintf("%s (%s): %s", f.Endpoint, strings.Join(addrs, ", "), why)
}

// A Claim is an endpoint that is this process's to serve.
type Claim struct {
	Endpoint  rendezvous.Endpoint
	Listeners []net.Listener // at least one, for the caller to use or close
}

// Own returns the first of the endpoints at which this process can listen, or nil, and what it has found on the way.
//
// It listens at the addresses that the endpoint's host means, all of which must be this machine's; a name that means
// several machines is an error. There are two cases in which it listens at all addresses. One is a name that means nothing
// but loopback here and is not localhost: a machine's own name often does, and other nodes know another address. The other
// is that hosting insists on the only endpoint there is, whatever its name means: something between the nodes translates
// addresses.
//
// If hosting insists, not being able to is an error, and a name may mean other machines as well.
func Own(ctx context.Context, endpoints []rendezvous.Endpoint, insist bool) (*Claim, []Finding, error) {
	return machine{lookup: net.DefaultResolver.LookupNetIP, addrs: net.InterfaceAddrs, listen: listen}.own(ctx, endpoints, insist)
}

// A machine is what Own asks.
type machine struct {
	lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)
	addrs  func() ([]net.Addr, error)
	listen func(ctx context.Context, at netip.AddrPort) (net.Listener, error)
}

func (m machine) own(ctx context.Context, endpoints []rendezvous.Endpoint, insist bool) (*Claim, []Finding, error) {
	local, err := m.local()
	if err != nil {
		return nil, nil, fmt.Errorf("cannot find out this machine's addresses: %w", err)
	}
	insistHere := insist && len(endpoints) == 1
	var findings []Finding
	for _, e := range endpoints {
		found, err := m.lookup(ctx, "ip", e.Host)
		if dns, ok := errors.AsType[*net.DNSError](err); ok {
			err = errors.New(dns.Err) // the endpoint says the rest
		}
		f := Finding{Endpoint: e, Addrs: normal(found)}
		var at []netip.Addr
		if err == nil || insistHere {
			at, err = choose(e, f.Addrs, local, insist, insistHere)
			if err != nil && !errors.Is(err, ErrElsewhere) {
				return nil, append(findings, f), err
			}
		}
		var listeners []net.Listener
		if err == nil {
			listeners, err = m.listenAll(ctx, at, e.Port)
		}
		f.Err = err
		findings = append(findings, f)
		if err == nil {
			return &Claim{Endpoint: e, Listeners: listeners}, findings, nil
		}
	}
	if insist {
		return nil, findings, fmt.Errorf("cannot host the rendezvous: %s", join(findings))
	}
	return nil, findings, nil
}

// choose returns the addresses at which to listen for an endpoint. local reports whether an address is this machine's.
func choose(e rendezvous.Endpoint, addrs []netip.Addr, local func(netip.Addr) bool, insist, insistHere bool) ([]netip.Addr, error) {
	var here, elsewhere []netip.Addr
	for _, a := range addrs {
		if local(a) {
			here = append(here, a)
		} else {
			elsewhere = append(elsewhere, a)
		}
	}
	switch {
	case len(here) == 0 && insistHere, len(here) > 0 && len(elsewhere) == 0 && onlyForUs(e, here):
		return []netip.Addr{all(addrs)}, nil
	case len(here) == 0:
		return nil, ErrElsewhere
	case len(elsewhere) > 0 && !insist:
		return nil, fmt.Errorf("endpoint %s means %v, which is this machine, and %v, which is another: give the name of one machine, or choose the host with is_host=true in the --rdzv-conf of one node", e, here[0], elsewhere[0])
	}
	return here, nil
}

// onlyForUs reports whether a name means nothing but loopback on this machine, as a host's own name often does.
func onlyForUs(e rendezvous.Endpoint, here []netip.Addr) bool {
	if _, err := netip.ParseAddr(e.Host); err == nil {
		return false
	}
	return !e.IsLoopback() && !slices.ContainsFunc(here, func(a netip.Addr) bool { return !a.IsLoopback() })
}

// all is the address that means all of them, in the family of some.
func all(addrs []netip.Addr) netip.Addr {
	if len(addrs) > 0 && !slices.ContainsFunc(addrs, netip.Addr.Is4) {
		return netip.IPv6Unspecified()
	}
	return netip.IPv4Unspecified()
}

// normal sorts addresses, so that processes that claim several do not each get some.
func normal(addrs []netip.Addr) []netip.Addr {
	out := make([]netip.Addr, len(addrs))
	for i, a := range addrs {
		out[i] = a.Unmap()
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out)
}

// local returns whether an address is this machine's.
func (m machine) local() (func(netip.Addr) bool, error) {
	list, err := m.addrs()
	if err != nil {
		return nil, err
	}
	known := make(map[netip.Addr]bool)
	for _, a := range list {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			known[p.Addr().Unmap()] = true
		}
	}
	return func(a netip.Addr) bool { return a.IsLoopback() || known[a.WithZone("")] }, nil
}

// listenAll listens at every address that there is, or at none.
func (m machine) listenAll(ctx context.Context, addrs []netip.Addr, port int) ([]net.Listener, error) {
	var listeners []net.Listener
	for _, a := range addrs {
		l, err := m.listen(ctx, netip.AddrPortFrom(a, uint16(port)))
		switch {
		case err == nil:
			listeners = append(listeners, l)
			continue
		case errors.Is(err, syscall.EADDRNOTAVAIL), errors.Is(err, syscall.EAFNOSUPPORT):
			continue // as [::1] of a machine without IPv6
		case errors.Is(err, syscall.EADDRINUSE):
			err = ErrTaken
		}
		for _, l := range listeners {
			_ = l.Close() // nobody is to connect
		}
		return nil, err
	}
	if len(listeners) == 0 {
		return nil, ErrElsewhere
	}
	return listeners, nil
}

func listen(ctx context.Context, at netip.AddrPort) (net.Listener, error) {
	network := "tcp6"
	if at.Addr().Is4() {
		network = "tcp4"
	} else if at.Addr().IsUnspecified() {
		network = "tcp" // both families
	}
	return new(net.ListenConfig).Listen(ctx, network, net.JoinHostPort(at.Addr().String(), strconv.Itoa(int(at.Port()))))
}

func join(findings []Finding) string {
	texts := make([]string, len(findings))
	for i, f := range findings {
		texts[i] = f.String()
	}
	return strings.Join(texts, "; ")
}
