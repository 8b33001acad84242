// Package bootstrap lets the ranks of a world meet (NCCL calls it so as well). Each rank finds out its own rank and
// where the ranks meet, and exchanges with all others how it is reached.
//
//   - place.go: which rank this is and where ranks meet, from options and environment, and the store there
//   - managed.go: the same if a resource manager has started the ranks, without gorun
//   - claim.go: each rank is one process, and may join one world after another
//   - meet.go: what ranks write into the store, and read from it
//   - address.go: the addresses of a rank and of rank 0's store
//   - distance.go: whether machines are far away from each other
//   - memory.go: whether ranks of a machine share memory
//   - waiting.go: logs which ranks Init waits for
package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/gorun/gorun/comm/internal/choice"
	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/token"
	"github.com/gorun/gorun/comm/internal/transport"
	"github.com/gorun/gorun/comm/internal/transport/tcp"
	"github.com/gorun/gorun/comm/store"
	"github.com/gorun/gorun/env/auth"
)

// Auto lets comm choose.
const Auto = "auto"

// Config says how a rank joins.
type Config struct {
	Method      string      // where ranks meet: env://, tcp://host:port or file:///path
	Store       store.Store // where they meet instead; may be nil
	Ranked      bool        // Rank and Size are set, and overrule the environment
	Rank, Size  int
	Timeout     time.Duration
	Transport   string // Auto, "shm" or "tcp"
	Token       string // empty: the user has set none
	TLS         bool
	Near        func(net.Conn) bool // reports whether a connection stays on this machine; nil: goes by its addresses
	Address     string              // by which others reach this rank, as addr.Choose reads it; empty: see listenAddress
	Connections int                 // of a stream; 0: as many as the network needs
	Tuning      choice.Tuning
	Log         *slog.Logger

	token  token.Token // made of Token by Join
	chosen netip.Addr  // Address, resolved
}

// A World is what a rank knows of all ranks when they have met.
type World struct {
	core.WorldConfig
	ID        uint64
	Transport transport.Transport
	Tuning    choice.Tuning // that of rank 0
	Leave     func()        // releases the rank for the next world
}

// A MissingError says which ranks did not come in time.
type MissingError struct {
	Missing []int // world ranks
	Size    int   // ranks in the world
	Where   string
	After   time.Duration // how long they were waited for
	Err     error
	Serves  bool // only rank 0 is missing, as far as is known: it serves the store, which does not answer. Error is that of Err
}

func (e *MissingError) Error() string {
	if e.Serves {
		return e.Err.Error()
	}
	return fmt.Sprintf("ranks %v have not come to %s", e.Missing, e.Where)
}

func (e *MissingError) Unwrap() error { return e.Err }

// refuse returns err, which says what is wrong with the options or the environment, as a core.Error.
func refuse(err error) error { return &core.Error{Kind: core.BadArgument, Op: "Init", Err: err} }

func refusef(format string, args ...any) error { return refuse(fmt.Errorf(format, args...)) }

// Join meets the other ranks. Its error is a [core.Error] of kind BadArgument or a [MissingError], or wraps what has
// failed.
func Join(ctx context.Context, cfg Config) (*World, error) {
	place, err := cfg.place()
	if err != nil {
		return nil, refuse(err)
	}
	place.began = time.Now()
	ctx, cancel := context.WithTimeout(ctx, cfg.Timeout)
	defer cancel()
	waits := startWaiting(cfg.Log, place.firstLog())
	defer waits.end()
	if place.master != "" {
		waits.on(func(context.Context) string { return "the name servers to say what " + place.master + " means" })
	}
	if place.size == 1 {
		return cfg.alone(), nil
	}
	end, err := cfg.negotiate(ctx, &place, waits)
	if err != nil {
		return nil, err
	}
	defer end()
	if err := cfg.checkToken(ctx, place); err != nil {
		return nil, err
	}
	if cfg.token, err = token.Or([]byte(cfg.Token)); err == nil {
		err = cfg.chooseAddress(ctx)
	}
	if err != nil {
		return nil, refuse(err)
	}
	return cfg.join(ctx, place, waits)
}

// checkToken refuses a token that is too weak for a meeting place that other machines can reach.
func (c *Config) checkToken(ctx context.Context, p place) error {
	if weak := auth.CheckSecret([]byte(c.Token)); weak != nil && p.isExposed(ctx) {
		if c.Token == "" {
			return refusef("%s can be reached from the network and there is no token: give every rank the same secret in GORUN_TOKEN (under gorun: --rdzv-token-file)", p.master)
		}
		return refusef("%s can be reached from the network: %w (GORUN_TOKEN)", p.master, weak)
	}
	if c.TLS && len(c.Token) < auth.MinSecret {
		return refusef("TLS between ranks needs a token of at least %d bytes, the same for every rank, in GORUN_TOKEN", auth.MinSecret)
	}
	return nil
}

func (c *Config) alone() *World {
	return &World{
		WorldConfig: core.WorldConfig{Peers: []core.Peer{self("").Peer}, Log: c.Log},
		Transport:   transport.Alone{}, Tuning: c.Tuning, Leave: func() {},
	}
}

// join meets the other ranks at p. If it fails, it undoes everything.
func (c *Config) join(ctx context.Context, p place, waits *waiting) (w *World, err error) {
	var undo []func() error
	defer func() {
		if err != nil {
			for _, f := range undo {
				err = errors.Join(err, f())
			}
		}
	}()
	kv, closeStore, err := c.openStore(ctx, p, waits)
	if err != nil {
		return nil, err
	}
	defer closeStore()
	var identity *auth.Identity
	if c.TLS {
		if identity, err = auth.NewIdentity(c.token.Bytes(), "workers"); err != nil {
			return nil, err
		}
	}
	ln, doubt, err := c.listen(ctx, p)
	if err != nil {
		return nil, err
	}
	undo = append(undo, ln.Close)
	me := self(ln.Addr().String())
	me.TLS, me.Tuning, me.OwnToken = c.TLS, c.Tuning.String(), c.token.Fingerprint()
	a, err := c.openAcceptor(&me)
	if err != nil {
		return nil, err
	}
	undo = append(undo, a.Close)
	kv = store.NewPrefix(kv, fmt.Sprintf("gorun/round/%d/", p.round))
	generation, leave, err := ownClaims.claim(ctx, kv, p)
	if err != nil {
		return nil, err
	}
	undo = append(undo, func() error { leave(); return nil })
	me.RoundTrip = roundTrip(kv)
	waits.on(func(ctx context.Context) string { return p.missing(ctx, kv, generation) })
	met, err := meet(ctx, kv, generation, p, me)
	if err == nil && c.Transport == "shm" {
		err = met.checkShared(me)
	}
	if err != nil {
		return nil, err
	}
	if doubt != "" && !met.isOneNetwork() {
		c.Log.Warn("it is a guess how other machines reach this one: say it in GORUN_COMM_ADDR (gorun: --local-addr)", "address", me.Addr, "because", doubt)
	}
	w = &World{ID: met.ID, Leave: leave, WorldConfig: core.WorldConfig{
		Rank: p.rank, Peers: met.peers(), Log: c.Log, Acceptor: a, Token: c.token.Bytes(),
		MustShare: c.Transport == "shm", OnFallback: OnFallback(c.Log, c.Transport == "shm"),
	}}
	if err = c.agree(w, me, met); err != nil {
		return nil, err
	}
	w.Transport = Nearby(&w.WorldConfig, w.ID, tcp.New(ln, tcp.Config{
		World: w.ID, Rank: p.rank, Peers: met.addresses(), Token: c.token.Bytes(), Log: c.Log,
		Connections: c.Connections, Here: w.Processors().Ranks, TLS: identity, Near: c.Near,
	}))
	return w, nil
}

// agree sets what rank 0 says for all ranks. It logs if this rank has something else.
func (c *Config) agree(w *World, me Info, met worldDoc) (err error) {
	first := met.Ranks[0]
	if me.Tuning != first.Tuning && me.Tuning != "" {
		c.Log.Warn("the tuning of rank 0 counts", "rank 0", first.Tuning, "this rank", me.Tuning)
	}
	if met.Far {
		w.Distances = distances(met.Ranks)
	}
	if w.Tuning, err = core.ParseTuning(first.Tuning); err != nil {
		return fmt.Errorf("the tuning of rank 0 on %s has what this build of comm does not know: %w: build all ranks from the same version", first.Host, err)
	}
	return nil
}
