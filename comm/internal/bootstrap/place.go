package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/gorun/gorun/comm/internal/reduce"
	"github.com/gorun/gorun/comm/internal/store/filestore"
	"github.com/gorun/gorun/comm/internal/store/tcpstore"
	"github.com/gorun/gorun/comm/store"
	"github.com/gorun/gorun/env"
	"github.com/gorun/gorun/env/manager"
)

// A place says which rank this is and where it meets the others.
type place struct {
	rank, size int
	here       int           // ranks of this node; 0: not known
	local      int           // this rank's local rank
	task       *manager.Task // what a resource manager says, if that has started this process; nil: the variables of torchrun say it
	round      int           // gorun's round; 0 outside gorun
	meet       string        // the meeting place, for errors
	master     string        // host:port of the store, unless there is a path or a Store
	hosted     bool          // the agent serves the store at master, not rank 0
	path       string        // file of the store
	began      time.Time     // when this rank began to join
}

// place returns the place according to options and environment.
func (c *Config) place() (place, error) {
	if _, err := reduce.Level(); err != nil {
		return place{}, err
	}
	switch c.Transport {
	case Auto, "shm", "tcp":
	default:
		return place{}, fmt.Errorf("transport %q: want auto, shm or tcp", c.Transport)
	}
	u, err := url.Parse(c.Method)
	if err != nil {
		return place{}, fmt.Errorf("init method %q: %w", c.Method, err)
	}
	set := map[string]string{} // options, as variables of the environment
	if q := u.Query(); q.Has("rank") {
		set["RANK"], set["WORLD_SIZE"] = q.Get("rank"), q.Get("world_size")
	}
	if c.Ranked {
		set["RANK"], set["WORLD_SIZE"] = strconv.Itoa(c.Rank), strconv.Itoa(c.Size)
	}
	var p place
	lookup := os.LookupEnv
	if _, ranked := os.LookupEnv("RANK"); !ranked && set["RANK"] == "" {
		started, ok, err := managed(lookup)
		switch here := c.Method == "env://" && c.Store == nil; {
		case here && (ok || err != nil):
			return started, err
		case ok: // the user says where ranks meet
			set["RANK"], set["WORLD_SIZE"] = strconv.Itoa(started.rank), strconv.Itoa(started.size)
		}
	}
	switch {
	case c.Method == "env://" && c.Store == nil:
	case c.Store != nil:
		p.meet = "the store given"
	case u.Scheme == "tcp" && u.Hostname() != "" && u.Port() != "":
		p.meet = "tcp://" + u.Host
		p.master = net.JoinHostPort(u.Hostname(), u.Port())
	case u.Scheme == "file" && u.Host == "" && filepath.IsAbs(u.Path):
		p.meet = "file://" + u.Path
		p.path = u.Path
	default:
		return p, fmt.Errorf("init method %q: want env://, tcp://host:port or file:///path", c.Method)
	}
	if p.meet != "" { // the method names the master, and other variables do not matter
		set["MASTER_ADDR"], set["MASTER_PORT"] = "localhost", "1"
		lookup = func(name string) (string, bool) {
			switch name {
			case "RANK", "WORLD_SIZE", "GORUN_ROUND":
				return os.LookupEnv(name)
			}
			return "", false
		}
	}
	w, err := env.Parse(func(name string) (string, bool) {
		if v, ok := set[name]; ok {
			return v, true
		}
		return lookup(name)
	})
	p.rank, p.size, p.round = w.Rank, w.WorldSize, w.Round
	if err != nil || p.meet != "" {
		return p, err
	}
	if !c.Ranked {
		p.here, p.local = w.LocalWorldSize, w.LocalRank
	}
	p.master, p.hosted = net.JoinHostPort(w.MasterAddr, strconv.Itoa(w.MasterPort)), w.StoreAddr != ""
	if p.hosted {
		p.master = w.StoreAddr
	}
	p.meet = "the store at " + p.master
	return p, nil
}

// openStore returns the store in which ranks meet, and a function that closes it. Rank 0 serves the store if no agent
// does.
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
		late := errors.Is(err, context.DeadlineExceeded)
		own := !late && (errors.Is(err, syscall.ENETUNREACH) || errors.Is(err, syscall.EADDRNOTAVAIL)) ||
			errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) // it is this machine's fault
		if p.rank != 0 && !p.hosted && !own {
			if err = fmt.Errorf("rank 0, which serves the store, has not come: %w", err); late { // or it has refused this rank
				err = p.withoutStore(err)
			}
		}
		return nil, nil, err
	}
	return s, func() { _ = s.Close(); stop() }, nil
}
