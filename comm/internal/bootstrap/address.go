package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/gorun/gorun/comm/internal/transport/tcp"
	"github.com/gorun/gorun/env/auth"
	"github.com/gorun/gorun/env/network"
)

// listen listens for the other ranks, at the address by which they reach this one. If that address is a guess, doubt
// says why.
func (c *Config) listen(ctx context.Context, p place) (ln net.Listener, doubt string, err error) {
	at, doubt, err := c.listenAddress(ctx, p)
	if err != nil {
		return nil, "", err
	}
	if weak := auth.CheckSecret(c.token.Bytes()); weak != nil && !at.IsLoopback() {
		return nil, "", refusef("others can reach this rank, at %v: %w (GORUN_TOKEN)", at, weak)
	}
	listener := net.ListenConfig{Control: tcp.WithoutBBR}
	ln, err = listener.Listen(ctx, "tcp", netip.AddrPortFrom(at, 0).String())
	if errors.Is(err, syscall.EADDRNOTAVAIL) && c.Token == "" { // a machine may have no IPv4
		ln, err = listener.Listen(ctx, "tcp", "[::1]:0")
	}
	return ln, doubt, err
}

// listenAddress returns the address that the user has chosen. Otherwise it is loopback if there is no token, or else
// the address that faces the master. The master's name may resolve to loopback on its own machine, as a host's own name
// often does, and to another address elsewhere. Then listenAddress returns the address that faces the default route.
func (c *Config) listenAddress(ctx context.Context, p place) (at netip.Addr, doubt string, err error) {
	switch {
	case c.chosen.IsValid():
		return c.chosen, "", nil
	case c.Token == "":
		return netip.AddrFrom4([4]byte{127, 0, 0, 1}), "", nil
	case p.master != "":
		host, _, _ := net.SplitHostPort(p.master) // made by JoinHostPort
		if at, err = network.FacingAddr(ctx, host); err != nil {
			return at, "", fmt.Errorf("no way to %s, where ranks meet: %w", p.master, err)
		}
		if !at.IsLoopback() || network.IsLoopback(host) || p.here == p.size {
			return at, "", nil
		}
	}
	return network.OutwardAddr(ctx)
}

// chooseAddress resolves the address that the user has chosen, if any.
func (c *Config) chooseAddress(ctx context.Context) (err error) {
	if c.Address == "" {
		return nil
	}
	c.chosen, err = network.ChooseAddr(ctx, c.Address)
	switch {
	case err != nil:
		return fmt.Errorf("address %q (GORUN_COMM_ADDR, or gorun's --local-addr): %w", c.Address, err)
	case c.Token == "" && !c.chosen.IsLoopback():
		return fmt.Errorf("%v, which is address %q, can be reached from the network and there is no token: give every rank the same secret in GORUN_TOKEN (under gorun: --rdzv-token-file)", c.chosen, c.Address)
	}
	return nil
}

// storeAddress returns where rank 0 serves the store: at the master's address. If the master's name resolves to
// loopback here, and to another address on other nodes, it is all addresses.
func (p place) storeAddress(ctx context.Context, authenticated bool) (string, error) {
	host, port, _ := net.SplitHostPort(p.master) // made by JoinHostPort
	if network.IsLoopback(host) || p.here == p.size || p.means(ctx, func(a netip.Addr) bool { return !a.IsLoopback() }) {
		return p.master, nil
	}
	switch {
	case authenticated:
		return net.JoinHostPort("", port), nil
	case p.here > 0:
		return "", refusef("%s means loopback here, and something else to ranks of other nodes, who need a token: give every rank the same secret in GORUN_TOKEN (under gorun: --rdzv-token-file)", host)
	}
	return p.master, nil
}

// isExposed reports whether other machines can reach the master. If its name does not resolve yet, they may.
func (p place) isExposed(ctx context.Context) bool {
	return p.master != "" && p.size > 1 && p.means(ctx, func(a netip.Addr) bool { return !a.IsLoopback() })
}

// means reports whether the master's name may resolve to an address of a kind. If it does not resolve yet, it may.
func (p place) means(ctx context.Context, kind func(netip.Addr) bool) bool {
	host, _, _ := net.SplitHostPort(p.master) // made by JoinHostPort
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	return err != nil || slices.ContainsFunc(found, func(a netip.Addr) bool { return kind(a.Unmap()) })
}
