// Package bootstrap lets the ranks of a world meet: each finds out who it is and where the others come, tells them how it is reached,
// and learns the same of all. (NCCL calls it so, too.)
//
//   - place.go: who this rank is and where ranks meet, from options and environment; store.go opens the store there
//   - claim.go: one process for every rank, world after world
//   - meet.go: what ranks write into the store, and read
//   - address.go: by which address a rank, and rank 0's store, are reached
//   - memory.go: whether ranks of a machine share memory
//   - waiting.go: telling for whom a rank waits
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
	"github.com/gorun/gorun/comm/store"
	"github.com/gorun/gorun/comm/transport"
	"github.com/gorun/gorun/comm/transport/mem"
	"github.com/gorun/gorun/comm/transport/tcp"
	"github.com/gorun/gorun/env/auth"
)

// Auto lets comm choose.
const Auto = "auto"

// Config says how a rank joins.
type Config struct {
	Method      string      // where ranks meet: env://, tcp://host:port or file:///path
	Store       store.Store // where they meet instead; may be nil
	Ranked      bool        // Rank and Size say who this rank is, whatever the environment says
	Rank, Size  int
	Timeout     time.Duration
	Transport   string // Auto, "shm" or "tcp"
	Token       string // that was given; empty: none
	TLS         bool
	Near        func(net.Conn) bool // whether both ends of a connection are on this machine; nil: by its addresses
	Address     string              // by which others reach this rank, in the words of package addr; empty: see listenAddress
	Connections int                 // of a stream; 0: as many as it takes
	Tuning      choice.Tuning
	Log         *slog.Logger

	token  token.Token // what Join makes of Token
	chosen netip.Addr  // what Address means
}

// A World is what ranks know of each other when they have met.
type World struct {
	core.WorldConfig
	ID        uint64
	Transport transport.Transport
	Tuning    choice.Tuning // that of rank 0
	Leave     func()        // gives up the claim to the rank, for the next world
}

// A MissingError says which ranks did not come in time.
type MissingError struct {
	Missing []int // world ranks
	Size    int   // ranks in the world
	Where   string
	After   time.Duration // how long they were waited for
	Err     error
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("ranks %v have not come to %s", e.Missing, e.Where)
}

func (e *MissingError) Unwrap() error { return e.Err }

// refuse is err, which says what is wrong with the options or the environment.
func refuse(err error) error { return &core.Error{Kind: core.BadArgument, Op: "Init", Err: err} }

// refusef is refuse of what format says.
func refusef(format string, args ...any) error { return refuse(fmt.Errorf(format, args...)) }

// Join meets the other ranks. Its error is a [core.Error] of kind BadArgument or a [MissingError], or wraps what has failed.
func Join(ctx context.Context, cfg Config) (*World, error) {
	place, err := cfg.place()
	if err != nil {
		return nil, refuse(err)
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.Timeout)
	defer cancel()
	waits := startWaiting(cfg.Log, place.reportDelay())
	defer waits.end()
	if place.master != "" {
		waits.on(func(context.Context) string { return "the name servers to say what " + place.master + " means" })
	}
	if place.size == 1 {
		return cfg.alone(), nil
	}
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

// checkToken refuses a token that is too weak for where ranks meet.
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

// alone is the world of one rank, who meets nobody.
func (c *Config) alone() *World {
	return &World{
		WorldConfig: core.WorldConfig{Peers: []core.Peer{self("").Peer}, Log: c.Log},
		Transport:   mem.NewNetwork(1).Transport(0), Tuning: c.Tuning, Leave: func() {},
	}
}

// join meets the other ranks at p. After an error nothing of it is left.
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
	turn, leave, err := ownClaims.claim(ctx, kv, p)
	if err != nil {
		return nil, err
	}
	undo = append(undo, func() error { leave(); return nil })
	waits.on(func(ctx context.Context) string { return p.missing(ctx, kv, turn) })
	met, err := meet(ctx, kv, turn, p, me)
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
	if w.Tuning, err = c.agreed(me, met.Ranks[0]); err != nil {
		return nil, err
	}
	w.Transport = Nearby(&w.WorldConfig, w.ID, tcp.New(ln, tcp.Config{
		World: w.ID, Rank: p.rank, Peers: met.addresses(), Token: c.token.Bytes(), Log: c.Log,
		Connections: c.Connections, Here: met.beside(p.rank), TLS: identity, Near: c.Near,
	}))
	return w, nil
}

// agreed is the tuning of first, which is rank 0. This rank may have been given another one, which does not count.
func (c *Config) agreed(me, first Info) (choice.Tuning, error) {
	if me.Tuning != first.Tuning && me.Tuning != "" {
		c.Log.Warn("the tuning of rank 0 counts", "rank 0", first.Tuning, "this rank", me.Tuning)
	}
	tuning, err := core.ParseTuning(first.Tuning)
	if err != nil {
		return nil, fmt.Errorf("rank 0 on %s has another version of comm: %w", first.Host, err)
	}
	return tuning, nil
}
