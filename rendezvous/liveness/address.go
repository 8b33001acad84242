package liveness

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// lookupTime is how long it may take to find out what a name means.
const lookupTime = time.Second

// listenAt listens where others call this machine host, and nowhere else. What is no address of this machine (a service, a NAT), or
// means loopback here although others call it so, leaves all addresses.
func listenAt(host string) (net.Listener, error) {
	for _, ip := range addressesOf(host) {
		l, err := net.Listen("tcp", net.JoinHostPort(ip.String(), "0"))
		if !errors.Is(err, syscall.EADDRNOTAVAIL) {
			return l, err
		}
	}
	return net.Listen("tcp", ":0")
}

func addressesOf(host string) (list []netip.Addr) {
	if ip, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{ip.Unmap()}
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookupTime)
	defer cancel()
	found, _ := net.DefaultResolver.LookupNetIP(ctx, "ip", host) // a name that means nothing here is one of those
	for _, ip := range found {
		if ip = ip.Unmap(); !ip.IsLoopback() || host == "localhost" {
			list = append(list, ip)
		}
	}
	return list
}
