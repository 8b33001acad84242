package worker

import (
	"cmp"
	"context"
	"errors"
	"os"
	"time"

	"github.com/gorun/gorun/comm/internal/bootstrap"
	"github.com/gorun/gorun/comm/internal/choice"
	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/endpoint"
	"github.com/gorun/gorun/comm/internal/membership"
	"github.com/gorun/gorun/env"
)

// Init joins a world for the first time, or after the one before has been closed. set changes what NewConfig returns.
func (p *Process) Init(ctx context.Context, set func(*Config)) (*World, error) {
	cfg := NewConfig(set)
	rejoins, err := p.connect(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if rejoins {
		p.setRejoinConfig(set, cfg.Token)
	}
	return p.join(ctx, "Init", cfg)
}

// setRejoinConfig makes Rejoin use the settings of this Init. If they have the token of this round, it uses that of the next one.
func (p *Process) setRejoinConfig(set func(*Config), token string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.set = set
	if token == os.Getenv("GORUN_TOKEN") {
		p.set = func(c *Config) {
			set(c)
			c.Token = os.Getenv("GORUN_TOKEN")
		}
	}
}

// A JoinError says that a process has not joined a world.
type JoinError struct {
	Err     error // that of [bootstrap.Join], or a [membership.OverError], or what has failed
	OfRound bool  // the world is one of the round
}

func (e *JoinError) Error() string { return e.Err.Error() }
func (e *JoinError) Unwrap() error { return e.Err }

// join joins the world of cfg, for op. Its error is a JoinError unless cfg is wrong.
func (p *Process) join(ctx context.Context, op string, cfg *Config) (*World, error) {
	if err := cfg.Check(); err != nil {
		return nil, &core.Error{Kind: core.BadArgument, Op: op, Err: err}
	}
	w, err := p.meet(ctx, cfg)
	if err != nil {
		return nil, &JoinError{err, p.rejoins(cfg)}
	}
	return w, nil
}

// connect connects this process to its agent, unless it is connected, or cannot rejoin after the world of cfg. It
// reports whether it can.
func (p *Process) connect(ctx context.Context, cfg *Config) (rejoins bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	socket := os.Getenv("GORUN_ROUND_SOCKET")
	switch {
	case socket == "" || !cfg.isOfRound():
		return false, nil
	case p.rounds != nil:
		return true, nil
	}
	w, err := env.FromOS()
	if err != nil {
		return false, err
	}
	p.rounds, err = membership.Connect(ctx, socket, w.Round)
	return err == nil, err
}

// rejoins reports whether this process can rejoin after the world of cfg.
func (p *Process) rejoins(cfg *Config) bool { return cfg.isOfRound() && p.membership() != nil }

// meet meets the other ranks of the world of cfg, and opens it.
func (p *Process) meet(ctx context.Context, cfg *Config) (*World, error) {
	bindCall, err := cfg.bind()
	if err != nil {
		return nil, err
	}
	during, cancel := ctx, context.CancelFunc(func() {})
	if p.rejoins(cfg) {
		during, cancel = p.membership().Round().During(ctx)
	}
	defer cancel()
	file := cfg.progressFile()
	defer reportWaiting(file)()
	var met *bootstrap.World
	err = cfg.polled(during, func(ctx context.Context) (err error) {
		met, err = cfg.meet(ctx)
		return err
	})
	if err != nil {
		if p.rejoins(cfg) {
			err = cmp.Or(awaitOver(during, err), err)
		}
		return nil, err
	}
	w, err := p.Open(cfg, met)
	if err != nil {
		return nil, err
	}
	w.Bind = bindCall
	if cfg.FlightOnQuit {
		w.leave = append(w.leave, p.quit.enter(p.watchQuit))
	}
	if file != "" {
		w.answers = true
		w.leave = append(w.leave, p.progress.enter(func() func() { return p.reportProgress(file, w.Log) }))
	}
	if w.round == nil {
		p.Note(nil, false) // what failed before this world is not why a program calls Rejoin
		return w, nil
	}
	if err := p.adopt(w); err != nil {
		_, closing := w.Close(w.All)
		return nil, errors.Join(err, closing)
	}
	stop := w.round.AfterFinal(w.onFinal)
	w.leave = append(w.leave, func() { stop() })
	return w, nil
}

// meet meets the other ranks.
func (c *Config) meet(ctx context.Context) (*bootstrap.World, error) {
	cfg := c.Config
	if c.OpenStore != nil {
		s, err := c.OpenStore(ctx)
		if err != nil {
			return nil, err
		}
		defer func() { _ = s.Close() }() // ranks have met, or have not
		cfg.Store = s
	}
	return bootstrap.Join(ctx, cfg)
}

// awaitOver returns the end of the round if that is why a rank has not met the others, and otherwise nil. err is what the rank found. The
// agent may not have said yet that the round is over, so awaitOver waits for that for a while.
func awaitOver(during context.Context, err error) error {
	m, missing := errors.AsType[*bootstrap.MissingError](err)
	missing = missing && !m.Serves // if the store does not answer, rank 0 may have died, and the agent is about to say so
	if _, wrong := errors.AsType[*core.Error](err); !missing && !wrong && !errors.Is(err, context.Canceled) {
		select {
		case <-during.Done():
		case <-time.After(endpoint.RevokeTimeout):
		}
	}
	if over, ok := errors.AsType[*membership.OverError](context.Cause(during)); ok {
		return over
	}
	return nil
}

// Open opens the world of ranks that have met.
func (p *Process) Open(cfg *Config, met *bootstrap.World) (*World, error) {
	met.ChunkSize = cmp.Or(cfg.ChunkSize, choice.ChunkSize)
	rejoins := p.rejoins(cfg)
	w := &World{
		process: p,
		World: core.NewWorld(met.WorldConfig, met.Transport, endpoint.Options{
			ConnectTimeout: cfg.Timeout, News: cfg.NotifyTimeout, Revocable: rejoins,
		}),
		leave: []func(){met.Leave},
	}
	w.Poll, w.CheckBuffers, w.Objects = cfg.Poll, cfg.CheckBuffers, cfg.Objects
	if rejoins {
		w.round = p.membership().Round()
		w.WithDeath = w.withDeath
	}
	ranks := make([]int, len(met.Peers))
	for r := range ranks {
		ranks[r] = r
	}
	var err error
	if w.All, err = w.NewGroup(met.ID, ranks, cfg.Timeout, met.Tuning); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.worlds = append(p.worlds, w)
	return w, nil
}
