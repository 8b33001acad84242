package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/gorun/gorun/comm/store"
	"github.com/gorun/gorun/comm/store/filestore"
	"github.com/gorun/gorun/comm/store/tcpstore"
)

// openStore returns the store in which ranks meet, and a function that closes it. Rank 0 serves the store if no agent does.
func (c *Config) openStore(ctx context.Context, p place, waits *waiting) (store.Store, func(), error) {
	switch {
	case c.Store != nil:
		return c.Store, func() {}, nil
	case p.path != "":
		s, err := filestore.Open(p.path)
		if err != nil {
			return nil, nil, err
		}
		return s, func() { _ = s.Close() }, nil
	}
	config := tcpstore.Config{Token: []byte(c.Token), TLS: c.TLS, Near: c.Near, Log: c.Log}
	stop := func() {}
	if p.rank == 0 && !p.hosted {
		at, err := p.storeAddress(ctx, !c.token.IsLoopback())
		if err != nil {
			return nil, nil, err
		}
		server, err := tcpstore.Listen(at, config)
		if errors.Is(err, syscall.EADDRNOTAVAIL) && !c.token.IsLoopback() { // the address belongs to a router or proxy in front of this machine
			_, port, _ := net.SplitHostPort(p.master)
			server, err = tcpstore.Listen(net.JoinHostPort("", port), config)
		}
		if err != nil {
			return nil, nil, err
		}
		stop = func() { _ = server.Close() }
	}
	config.OnRetry = func(err error) {
		waits.on(func(context.Context) string { return p.unanswered(err) })
	}
	config.OnRetry(nil)
	s, err := tcpstore.Dial(ctx, p.master, config)
	if err != nil {
		stop()
		if p.rank != 0 && !p.hosted && !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE) {
			err = fmt.Errorf("rank 0, which serves the store, has not come: %w", err)
		}
		return nil, nil, err
	}
	return s, func() { _ = s.Close(); stop() }, nil
}
