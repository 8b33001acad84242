package worker

import (
	"cmp"
	"context"
	"errors"
	"os"
	"time"

	"github.com/gorun/gorun/comm/internal/affinity"
	"github.com/gorun/gorun/comm/internal/bootstrap"
	"github.com/gorun/gorun/comm/internal/choice"
	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/endpoint"
	"github.com/gorun/gorun/comm/internal/membership"
	"github.com/gorun/gorun/comm/store"
	"github.com/gorun/gorun/env"
)

// A Binding says what of a process is bound to its processors.
type Binding uint8

// The bindings.
const (
	BindAuto Binding = iota // all its threads, from Join on
	BindCall                // the thread that is in a call
	BindNone
)

// Config says how a process joins a world.
type Config struct {
	bootstrap.Config
	ChunkSize     int           // how many bytes of a message of a plan travel at once; 0: choice.ChunkSize
	NotifyTimeout time.Duration // see endpoint.Options.News
	FlightOnQuit  bool          // SIGQUIT prints the flight recorders
	Poll          func() error  // see core.World
	CheckBuffers  bool          // see core.World
	Binding       Binding       // to the processors of which the agent has told this process

	// OpenStore returns the store in which ranks of a round meet; nil: they meet elsewhere. It is called for each round.
	OpenStore func(ctx context.Context) (store.Store, error)
}

// isOfRound reports whether the world is the one that the environment describes: the world of the round.
func (c *Config) isOfRound() bool { return c.Method == "env://" && c.Store == nil && !c.Ranked }

// Connect connects this process to its agent, unless it is connected, or cannot rejoin after the world of cfg. It
// reports whether it can.
func (p *Process) Connect(ctx context.Context, cfg *Config) (rejoins bool, err error) {
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

// Rejoins reports whether this process can rejoin after the world of cfg.
func (p *Process) Rejoins(cfg *Config) bool { return cfg.isOfRound() && p.membership() != nil }

// Join joins the world of cfg. Its error is that of [bootstrap.Join], or a [membership.OverError], or wraps what has
// failed.
func (p *Process) Join(ctx context.Context, cfg *Config) (*World, error) {
	bindCall, err := cfg.bind()
	if err != nil {
		return nil, err
	}
	during, cancel := ctx, context.CancelFunc(func() {})
	if p.Rejoins(cfg) {
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
		if p.Rejoins(cfg) {
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

// polled calls f, and Poll as long as f has not returned. If Poll returns an error, the context of f ends.
func (c *Config) polled(ctx context.Context, f func(ctx context.Context) error) (err error) {
	if c.Poll == nil {
		return f(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = f(ctx)
	}()
	polling := endpoint.Await(endpoint.WithPoll(context.WithoutCancel(ctx), c.Poll), done)
	if polling == nil {
		return err
	}
	cancel()
	if <-done; err == nil { // it has been faster
		return nil
	}
	return polling
}

// bind binds this process to its share of the processors, if its agent has told it one: then several ranks are on this machine.
// With BindCall it returns what binds a call.
func (c *Config) bind() (call func() func(), err error) {
	share := os.Getenv(affinity.Variable)
	switch c.Binding {
	case BindAuto:
		err = affinity.Bind(share)
	case BindCall:
		call, err = affinity.Calls(share)
	case BindNone:
	}
	if wrong, ok := errors.AsType[*affinity.ShareError](err); ok {
		return nil, &core.Error{Kind: core.BadArgument, Op: "Init", Err: wrong}
	}
	if err != nil { // ranks that are not bound are slower, and no worse
		c.Log.Debug("comm: this rank is not bound to its processors", "error", err)
	}
	return call, nil
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
	rejoins := p.Rejoins(cfg)
	w := &World{
		process: p,
		World: core.NewWorld(met.WorldConfig, met.Transport, endpoint.Options{
			ConnectTimeout: cfg.Timeout, News: cfg.NotifyTimeout, Revocable: rejoins,
		}),
		leave: []func(){met.Leave},
	}
	w.Poll, w.CheckBuffers = cfg.Poll, cfg.CheckBuffers
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
