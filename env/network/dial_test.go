package network

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// TestDial: addresses that are dead or refuse cost a moment, not the time that there is.
func TestDial(t *testing.T) {
	refused := errors.New("refused")
	for name, k := range map[string]struct {
		addrs []netip.Addr
		want  string // the address that is reached, or the error
		after time.Duration
	}{
		"one":             {addrs("10.0.0.5"), "10.0.0.5:7", 0},
		"dead, then good": {addrs("10.9.0.1", "10.0.0.5"), "10.0.0.5:7", tryDelay},
		"many dead":       {addrs("10.9.0.1", "fd09::1", "10.9.0.2", "10.9.0.3", "10.0.0.5"), "10.0.0.5:7", 4 * tryDelay},
		"refuses":         {addrs("10.8.0.1", "10.0.0.5"), "10.0.0.5:7", 0},
		"slow, not dead":  {addrs("10.7.0.1", "10.9.0.1"), "10.7.0.1:7", time.Second},
		"all refuse":      {addrs("10.8.0.1", "10.8.0.2"), "refused", 0},
		"all dead":        {addrs("10.9.0.1", "10.9.0.2"), "context deadline exceeded", 3 * time.Second},
		"none":            {nil, "dial tcp: no such host", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := machine{
					lookup: func(context.Context, string, string) ([]netip.Addr, error) {
						if k.addrs == nil {
							return nil, errors.New("no such host")
						}
						return k.addrs, nil
					},
					connect: func(ctx context.Context, _, address string) (net.Conn, error) {
						switch a := netip.MustParseAddrPort(address).Addr(); {
						case a.Is6() || a.As4()[1] == 9:
							<-ctx.Done()
							return nil, ctx.Err()
						case a.As4()[1] == 8:
							return nil, refused
						case a.As4()[1] == 7:
							time.Sleep(time.Second)
						}
						return conn{at: address}, nil
					},
				}
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				began := time.Now()
				c, err := m.dial(ctx, "tcp", "host:7")
				got := ""
				if err != nil {
					got = err.Error()
				} else {
					got = c.(conn).at
				}
				if took := time.Since(began); got != k.want || took != k.after {
					t.Errorf("%s after %v, want %s after %v", got, took, k.want, k.after)
				}
			})
		})
	}
}

type conn struct {
	net.Conn
	at string
}

func (conn) Close() error { return nil }
