// Package network is what gorun and comm need of the network of this machine.
//
//	addr.go         the address at which other machines reach this one: the one that the user chose, or the one on the route to them
//	interfaces.go   the interfaces of this machine
//	dial.go         connecting to other machines by name
//	keepalive.go    a TCP connection ends soon after the machine at its other end has vanished
//	ports.go        TCP ports reserved for servers that start later, in this process or another
package network

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// A machine is the source of answers, which tests replace.
type machine struct {
	interfaces func() ([]Interface, error)
	lookup     func(ctx context.Context, network, host string) ([]netip.Addr, error)
	source     func(ctx context.Context, to string) (netip.Addr, error)
	connect    func(ctx context.Context, network, address string) (net.Conn, error)
}

var here = machine{interfaces, net.DefaultResolver.LookupNetIP, source, new(net.Dialer).DialContext}

// ChooseAddr returns the address of this machine that choice means: an interface, an address, a prefix that contains the address,
// such as 10.1.0.0/16, or a name. The error lists the machine's addresses.
func ChooseAddr(ctx context.Context, choice string) (netip.Addr, error) {
	return here.choose(ctx, choice)
}

// FacingAddr returns the address of this machine from which packets are sent to host, a name or an address.
func FacingAddr(ctx context.Context, host string) (netip.Addr, error) { return here.source(ctx, host) }

// OutwardAddr returns the address of this machine at which other machines are likely to reach it, if none of them is known: the address
// on the default route, or else that of the first interface that does not lead to containers. If there are several such interfaces,
// doubt says so. If there is none, the address is loopback.
func OutwardAddr(ctx context.Context) (found netip.Addr, doubt string, err error) {
	return here.outward(ctx)
}

// IsLoopback reports whether host is loopback on every machine, as it is written: names are not looked up.
func IsLoopback(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().IsLoopback()
	}
	name := strings.TrimSuffix(host, ".")
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}

// Hostname returns the name of this machine, or localhost if it has none.
func Hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return name
}

// Loopback returns 127.0.0.1, or ::1 if this machine has only that.
func Loopback() netip.Addr { return here.loopback() }

// Interfaces returns the network interfaces of this machine.
func Interfaces() ([]Interface, error) { return here.interfaces() }

// IsInterface reports whether this machine has an interface with this name.
func IsInterface(name string) bool {
	list, err := here.interfaces()
	return err == nil && slices.ContainsFunc(list, func(i Interface) bool { return i.Name == name })
}

func (m machine) choose(ctx context.Context, choice string) (netip.Addr, error) {
	list, err := m.interfaces()
	if err != nil {
		return netip.Addr{}, err
	}
	fail := func(format string, args ...any) (netip.Addr, error) {
		return netip.Addr{}, fmt.Errorf("%s; this machine has %s", fmt.Sprintf(format, args...), describe(list))
	}
	if i := slices.IndexFunc(list, func(i Interface) bool { return i.Name == choice }); i >= 0 {
		switch found := list[i].best(); {
		case !list[i].Up:
			return fail("interface %s is down", choice)
		case !found.IsValid():
			return fail("interface %s has no address that others could reach", choice)
		default:
			return found, nil
		}
	}
	if prefix, err := netip.ParsePrefix(choice); err == nil {
		return within(prefix.Masked(), list, fail)
	}
	if a, err := netip.ParseAddr(choice); err == nil {
		if !has(list, a.Unmap()) {
			return fail("%s is not an address of this machine", choice)
		}
		return a.Unmap(), nil
	}
	if strings.Contains(choice, "/") {
		return fail("%q is not a prefix such as 10.1.0.0/16", choice)
	}
	found, err := m.lookup(ctx, "ip", choice)
	if err != nil {
		return fail("%q is not an interface, and cannot be looked up as a name (%v)", choice, err)
	}
	return named(choice, found, list, fail)
}

// within returns the address in prefix, if only one interface has any.
func within(prefix netip.Prefix, list []Interface, fail func(string, ...any) (netip.Addr, error)) (netip.Addr, error) {
	var found netip.Addr
	var on string
	for _, i := range list {
		for _, a := range i.Addrs {
			switch {
			case !i.Up || !prefix.Contains(a):
			case !found.IsValid():
				found, on = a, i.Name
			case on != i.Name:
				return fail("%v means %v of interface %s and %v of %s: want one of them", prefix, found, on, a, i.Name)
			}
		}
	}
	if !found.IsValid() {
		return fail("%v contains no address of this machine", prefix)
	}
	return found, nil
}

// named returns the address of this machine among those that a name means. It must not be loopback, unless the name is localhost.
func named(name string, means []netip.Addr, list []Interface, fail func(string, ...any) (netip.Addr, error)) (netip.Addr, error) {
	loopback := false
	for _, a := range means {
		switch a = a.Unmap(); {
		case !has(list, a):
		case !a.IsLoopback() || name == "localhost":
			return a, nil
		default:
			loopback = true
		}
	}
	if loopback {
		return fail("%s means %v here, which no other machine can reach", name, means)
	}
	return fail("%s means %v, which is another machine", name, means)
}

func (m machine) outward(ctx context.Context) (netip.Addr, string, error) {
	for _, outside := range []string{"192.0.2.1", "2001:db8::1"} { // for documentation: nobody has them
		if a, err := m.source(ctx, outside); err == nil && !a.IsLoopback() {
			return a, "", nil
		}
	}
	list, err := m.interfaces()
	if err != nil {
		return netip.Addr{}, "", err
	}
	list = slices.DeleteFunc(slices.Clone(list), func(i Interface) bool { return !i.Up || i.Loopback || i.Containers || !i.best().IsValid() })
	if len(list) == 0 {
		return m.loopback(), "this machine has no address but loopback", nil
	}
	if len(list) > 1 {
		return list[0].best(), fmt.Sprintf("there is no default route, and this machine has %s: took the first", describe(list)), nil
	}
	return list[0].best(), "", nil
}

func (m machine) loopback() netip.Addr {
	v4, v6 := netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()
	list, err := m.interfaces()
	has := func(a netip.Addr) bool {
		return slices.ContainsFunc(list, func(i Interface) bool { return slices.Contains(i.Addrs, a) })
	}
	if err == nil && !has(v4) && has(v6) {
		return v6
	}
	return v4
}

// source asks the kernel for a route.
func source(ctx context.Context, to string) (netip.Addr, error) {
	c, err := new(net.Dialer).DialContext(ctx, "udp", net.JoinHostPort(to, "9")) // sends nothing
	if err != nil {
		return netip.Addr{}, err
	}
	defer func() { _ = c.Close() }()
	a, err := netip.ParseAddrPort(c.LocalAddr().String())
	return a.Addr().Unmap(), err
}
