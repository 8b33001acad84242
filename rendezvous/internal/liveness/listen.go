package liveness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"

	"github.com/gorun/gorun/env/auth"
	"github.com/gorun/gorun/env/auth/admission"
	"github.com/gorun/gorun/env/network"
)

func (d *Detector) answer(conn *admission.Conn) {
	caller, err := d.welcome(conn)
	if err == nil && caller.Control {
		d.handOver(conn)
		return
	}
	if err != nil || !caller.Stay {
		if err != nil {
			conn.TurnedAway(err)
		}
		_ = conn.Close() // the caller knows why
		return
	}
	network.KeepAlive(conn.NetConn(), true)
	d.count(caller.From, 1)
	_ = await(d.ctx, conn) // however it has ended
	d.count(caller.From, -1)
	host, _, err := net.SplitHostPort(conn.RemoteAddr().String()) // what it calls itself may mean something else here
	if err != nil {
		return
	}
	if addr := net.JoinHostPort(host, strconv.Itoa(caller.Port)); d.ended(d.ctx, caller.From, addr, nil) { // nobody may ever have reached it there
		d.config.Ended(caller.From, addr)
	}
}

func (d *Detector) welcome(conn *admission.Conn) (caller hello, err error) {
	defer context.AfterFunc(d.ctx, func() { _ = conn.Close() })()
	_, err = auth.Accept(conn, *d.secret.Load(), func(text []byte) ([]byte, error) {
		if !conn.Admit() {
			return nil, net.ErrClosed
		}
		_ = conn.SetDeadline(time.Now().Add(callLimit)) // for what is left to say
		caller, err = parseHello(text)
		switch {
		case err != nil:
		case caller.To != d.config.Key:
			err = errors.New("another process answers here")
		case caller.Control && d.config.Control == nil:
			err = errors.New("it takes no such connections")
		}
		return nil, err
	})
	return caller, errors.Join(err, conn.SetDeadline(time.Time{}))
}

func parseHello(text []byte) (h hello, err error) {
	if err := json.Unmarshal(text, &h); err != nil {
		return hello{}, fmt.Errorf("not a hello: %w", err)
	}
	if len(h.From) > maxKey || h.Port < 0 || h.Port > 65535 || h.Stay && h.Port == 0 {
		return hello{}, fmt.Errorf("not a hello: it is from %.80q at port %d", h.From, h.Port)
	}
	return h, nil
}

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
