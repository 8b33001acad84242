package comm

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

	"github.com/gorun/gorun/comm/internal/reduce"
	"github.com/gorun/gorun/comm/internal/token"
	"github.com/gorun/gorun/comm/store/tcpstore"
	"github.com/gorun/gorun/comm/transport/mem"
	"github.com/gorun/gorun/comm/transport/tcp"
	"github.com/gorun/gorun/env"
	"github.com/gorun/gorun/env/auth"
)

// Init joins the world and returns it, once every rank has come. With no options it takes its place from the
// environment that gorun (or torchrun) gives its workers; see [WithInitMethod] for other ways to meet. When ranks
// do not come before ctx or the timeout ends, the error is a [MissingRanksError]. Once the world has been closed, Init joins
// the next one of the same ranks.
func Init(ctx context.Context, opts ...Option) (*Group, error) {
	cfg := newConfig(opts)
	place, err := cfg.place()
	if err != nil {
		return nil, &ArgumentError{Op: "Init", Err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.timeout)
	defer cancel()
	waits := startWaiting(cfg.log, place.patience())
	defer waits.end()
	if place.master != "" {
		waits.on(func(context.Context) string { return "the name servers to say what " + place.master + " means" })
	}
	if weak := auth.CheckSecret([]byte(cfg.given)); weak != nil && place.isExposed(ctx) {
		if cfg.given == "" {
			return nil, badArgument("Init", "%s can be reached from the network and there is no token: give every rank the same secret in GORUN_TOKEN (under gorun: --rdzv-token-file)", place.master)
		}
		return nil, badArgument("Init", "%s can be reached from the network: %w (GORUN_TOKEN)", place.master, weak)
	}
	if cfg.tls && place.size > 1 && len(cfg.given) < auth.MinSecret {
		return nil, badArgument("Init", "TLS between ranks needs a token of at least %d bytes, the same for every rank, in GORUN_TOKEN", auth.MinSecret)
	}
	if place.size > 1 {
		if cfg.token, err = token.Or([]byte(cfg.given)); err == nil {
			err = cfg.chooseAddress(ctx)
		}
		if err != nil {
			return nil, &ArgumentError{Op: "Init", Err: err}
		}
	}
	g, err := join(ctx, cfg, place, waits)
	if argument, ok := errors.AsType[*ArgumentError](err); ok {
		return nil, argument
	}
	if err != nil {
		return nil, fmt.Errorf("comm: Init: %w", err)
	}
	if cfg.flightOnQuit {
		g.world.leave = append(g.world.leave, onQuit.enter())
	}
	return g, nil
}

// A place is who this rank is and where it meets the others.
type place struct {
	rank, size int
	here       int    // ranks of this node; 0: not known
	local      int    // how many of them are before this one
	round      int    // gorun's round; 0 outside gorun
	meet       string // how to name the meeting place in errors
	master     string // host:port of the store, unless path or a Store is given
	hosted     bool   // somebody else serves the store at master
	path       string // file of the store
}

// place works out the place from options and environment.
func (c *config) place() (place, error) {
	if err := c.check(); err != nil {
		return place{}, err
	}
	if _, err := reduce.Level(); err != nil {
		return place{}, err
	}
	switch c.transport {
	case auto, "shm", "tcp":
	default:
		return place{}, fmt.Errorf("transport %q: want auto, shm or tcp", c.transport)
	}
	u, err := url.Parse(c.method)
	if err != nil {
		return place{}, fmt.Errorf("init method %q: %w", c.method, err)
	}
	set := map[string]string{} // what options say, in the words of the environment
	if q := u.Query(); q.Has("rank") {
		set["RANK"], set["WORLD_SIZE"] = q.Get("rank"), q.Get("world_size")
	}
	if c.ranked {
		set["RANK"], set["WORLD_SIZE"] = strconv.Itoa(c.rank), strconv.Itoa(c.size)
	}
	var p place
	switch {
	case c.store != nil:
		p.meet = "the store given"
	case u.Scheme == "tcp" && u.Hostname() != "" && u.Port() != "":
		p.meet = "tcp://" + u.Host
		p.master = net.JoinHostPort(u.Hostname(), u.Port())
	case u.Scheme == "file" && u.Host == "" && filepath.IsAbs(u.Path):
		p.meet = "file://" + u.Path
		p.path = u.Path
	case c.method == "env://":
		w, err := env.Parse(overridden(set, os.LookupEnv))
		if err != nil {
			return p, err
		}
		p.rank, p.size, p.round = w.Rank, w.WorldSize, w.Round
		if !c.ranked {
			p.here, p.local = w.LocalWorldSize, w.LocalRank
		}
		p.master, p.hosted = net.JoinHostPort(w.MasterAddr, strconv.Itoa(w.MasterPort)), w.StoreAddr != ""
		if p.hosted {
			p.master = w.StoreAddr
		}
		p.meet = "the store at " + p.master
		return p, nil
	default:
		return p, fmt.Errorf("init method %q: want env://, tcp://host:port or file:///path", c.method)
	}
	// Only these variables matter here; the master is whatever the method says.
	set["MASTER_ADDR"], set["MASTER_PORT"] = "localhost", "1"
	w, err := env.Parse(overridden(set, func(name string) (string, bool) {
		switch name {
		case "RANK", "WORLD_SIZE", "GORUN_ROUND":
			return os.LookupEnv(name)
		}
		return "", false
	}))
	p.rank, p.size, p.round = w.Rank, w.WorldSize, w.Round
	return p, err
}

func overridden(set map[string]string, lookup func(string) (string, bool)) func(string) (string, bool) {
	return func(name string) (string, bool) {
		if v, ok := set[name]; ok {
			return v, true
		}
		return lookup(name)
	}
}

// join meets the other ranks and connects the world.
func join(ctx context.Context, cfg config, p place, waits *waiting) (*Group, error) {
	if p.size == 1 {
		return newWorld(cfg, 0, 0, []rankInfo{self("")}, mem.NewNetwork(1).Transport(0), nil)
	}
	store, closeStore, err := openStore(ctx, cfg, p, waits)
	if err != nil {
		return nil, err
	}
	defer closeStore()
	var identity *auth.Identity
	if cfg.tls {
		if identity, err = auth.NewIdentity(cfg.token.Bytes(), "workers"); err != nil {
			return nil, err
		}
	}
	ln, doubt, err := cfg.listen(ctx, p)
	if err != nil {
		return nil, err
	}
	me := self(ln.Addr().String())
	me.TLS, me.Tuning, me.OwnToken = cfg.tls, cfg.rules.String(), cfg.token.Fingerprint()
	desk, err := cfg.openDesk(&me)
	if err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	store = NewPrefixStore(store, fmt.Sprintf("gorun/round/%d/", p.round))
	turn, leave, err := ownSeats.sit(ctx, store, p)
	if err != nil {
		return nil, errors.Join(err, ln.Close(), desk.Close())
	}
	waits.on(func(ctx context.Context) string { return p.missing(ctx, store, turn) })
	world, err := meet(ctx, store, turn, p, me)
	if err == nil && cfg.transport == "shm" {
		err = world.checkShared(me)
	}
	if err != nil {
		leave()
		return nil, errors.Join(err, ln.Close(), desk.Close())
	}
	if doubt != "" && !world.isOneNetwork() {
		cfg.log.Warn("it is a guess how other machines reach this one: say it in GORUN_COMM_ADDR (gorun: --local-addr)", "address", me.Addr, "because", doubt)
	}
	if cfg.rules, err = cfg.agreed(me, world.Ranks[0]); err != nil {
		leave()
		return nil, errors.Join(err, ln.Close(), desk.Close())
	}
	cfg.without = cfg.doWithout()
	far := tcp.New(ln, tcp.Config{
		World: world.ID, Rank: p.rank, Peers: addresses(world.Ranks), Token: cfg.token.Bytes(), Log: cfg.log,
		Connections: cfg.ofStream, Here: world.beside(p.rank), TLS: identity, Near: cfg.near,
	})
	g, err := newWorld(cfg, p.rank, world.ID, world.Ranks, cfg.nearby(far, desk, world.ID, p.rank, world.Ranks), desk)
	if err == nil {
		g.world.leave = append(g.world.leave, leave)
	}
	return g, err
}

// openStore returns the store in which ranks meet, and how to let go of it. Rank 0 serves it where nobody else does.
func openStore(ctx context.Context, cfg config, p place, waits *waiting) (Store, func(), error) {
	switch {
	case cfg.store != nil:
		return cfg.store, func() {}, nil
	case p.path != "":
		s, err := NewFileStore(p.path)
		if err != nil {
			return nil, nil, err
		}
		return s, func() { _ = s.Close() }, nil
	}
	config := tcpstore.Config{Token: []byte(cfg.given), TLS: cfg.tls, Near: cfg.near, Log: cfg.log}
	stop := func() {}
	if p.rank == 0 && !p.hosted {
		at, err := p.storeAddress(ctx, !cfg.token.IsLoopback())
		if err != nil {
			return nil, nil, err
		}
		server, err := tcpstore.Listen(at, config)
		if errors.Is(err, syscall.EADDRNOTAVAIL) && !cfg.token.IsLoopback() { // behind a name or address that is not the machine's own
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
