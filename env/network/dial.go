package network

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// tryDelay is how long an address may be silent before Dial tries the next one as well (RFC 8305).
const tryDelay = 250 * time.Millisecond

// Dial connects gorun's own processes to each other, as net.Dialer.DialContext does. If a name has several addresses and one of them does not
// answer, Dial soon tries the next one as well, where package net may wait for minutes. It uses no proxy.
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return here.dial(ctx, network, address)
}

// NoLoopback says why a connection to host has failed with err, if it is because this machine cannot reach itself; otherwise it is nil.
func NoLoopback(host string, err error) error {
	if IsLoopback(host) && errors.Is(err, syscall.ENETUNREACH) {
		return errors.New("this machine cannot reach itself there: let its loopback interface be up (ip link set lo up) and have that address")
	}
	return nil
}

// DialTCP is Dial as gRPC wants it.
func DialTCP(ctx context.Context, address string) (net.Conn, error) { return Dial(ctx, "tcp", address) }

func (m machine) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return m.connect(ctx, network, address)
	}
	found, err := m.lookup(ctx, "ip", host)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	type result struct {
		conn net.Conn
		err  error
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results, returned := make(chan result), make(chan struct{})
	defer close(returned)
	try := func(a netip.Addr) {
		conn, err := m.connect(ctx, network, net.JoinHostPort(a.Unmap().String(), port))
		select {
		case results <- result{conn, err}:
		case <-returned: // another one was faster
			if err == nil {
				_ = conn.Close()
			}
		}
	}
	var failure error // the first one
	for open := 0; open > 0 || len(found) > 0; {
		if len(found) > 0 {
			go try(found[0])
			found, open = found[1:], open+1
		}
		var silent <-chan time.Time // nil: there is no other to try
		if len(found) > 0 {
			silent = time.After(tryDelay)
		}
		select {
		case r := <-results:
			if r.err == nil {
				return r.conn, nil
			}
			failure = cmp.Or(failure, r.err)
			open--
		case <-silent:
		}
	}
	return nil, failure
}

// Pause waits, as one does between two tries to reach somebody. It returns false, and early, if ctx ends.
func Pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
