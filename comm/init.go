package comm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"strconv"
	"time"

	"github.com/gorun/gorun/comm/internal/affinity"
	"github.com/gorun/gorun/comm/internal/bootstrap"
	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/transport/tcp"
)

// Init joins the world and returns it, once every rank has come. Without options it takes rank and size from the environment that gorun (or
// torchrun) sets for its workers, or else from that of a resource manager that has started this process: Slurm, Open MPI, MPICH or Flux.
// [WithInitMethod] has other ways to meet. If ranks do not come before ctx ends or the timeout is over, the error is a [MissingRanksError].
// After the world has been closed, Init joins the next world of the same ranks.
func Init(ctx context.Context, opts ...Option) (*Group, error) {
	if err := connectAgent(ctx, opts); err != nil {
		return nil, fmt.Errorf("comm: Init: %w", err)
	}
	return join(ctx, "Init", opts)
}

// join joins the world, for op.
func join(ctx context.Context, op string, opts []Option) (*Group, error) {
	cfg := newConfig(opts)
	if err := cfg.check(); err != nil {
		return nil, &ArgumentError{Op: op, Err: err}
	}
	if err := cfg.bind(); err != nil {
		return nil, &ArgumentError{Op: op, Err: err}
	}
	during, cancel := cfg.during(ctx)
	defer cancel()
	file := cfg.progressFile()
	defer reportWaiting(file)()
	w, err := bootstrap.Join(during, cfg.Config)
	if err != nil && cfg.mayRejoin() {
		if over := awaitOver(during, err); over != nil {
			return nil, overError(op, *over)
		}
	}
	if err != nil {
		err = notJoined(op, err)
		if cfg.mayRejoin() {
			life.failure.Store(&err)
		} else {
			life.others.Store(&err)
		}
		return nil, err
	}
	g, err := newWorld(cfg, w)
	if err != nil {
		return nil, fmt.Errorf("comm: %s: %w", op, err)
	}
	if cfg.flightOnQuit {
		g.world.leave = append(g.world.leave, onQuit.enter(watchQuit))
	}
	if file != "" {
		g.world.leave = append(g.world.leave, onProgress.enter(func() func() { return reportProgress(g, file) }))
	}
	if cfg.mayRejoin() {
		if err := life.adopt(g.world); err != nil {
			return nil, fmt.Errorf("comm: %s: %w", op, errors.Join(err, g.Close()))
		}
		life.worlds.add(g)
		stop := g.world.round.AfterFinal(g.world.onFinal)
		g.world.leave = append(g.world.leave, func() { stop() })
	} else {
		life.others.Store(nil) // what failed before this world is not why a program calls Rejoin
	}
	return g, nil
}

// notJoined returns err, because of which this rank has not met the others in op, as an error of this package.
func notJoined(op string, err error) error {
	if e, ok := errors.AsType[*core.Error](err); ok {
		return public(e)
	}
	if m, ok := errors.AsType[*bootstrap.MissingError](err); ok {
		err = &MissingRanksError{Missing: m.Missing, Size: m.Size, Where: m.Where, After: m.After, Err: m.Err, onlyErr: m.Serves}
	}
	return fmt.Errorf("comm: %s: %w", op, err)
}

// DefaultTimeout is the limit of one operation, and of Init, unless [WithTimeout] says otherwise.
const DefaultTimeout = 30 * time.Minute

type config struct {
	bootstrap.Config
	chunkSize     int           // how many bytes of a message of a plan travel at once; 0: plan.ChunkSize
	notifyTimeout time.Duration // see endpoint.Options.News
	tuning        string        // rules that check parses into Tuning; empty: Tuning is set
	connections   string        // of a stream: a number, or auto; empty: auto

	codec        Codec
	objectLimit  int
	flightOnQuit bool
}

func newConfig(opts []Option) config {
	c := config{
		Config: bootstrap.Config{
			Method: "env://", Timeout: DefaultTimeout, Transport: bootstrap.Auto, Token: os.Getenv("GORUN_TOKEN"),
			Address: os.Getenv("GORUN_COMM_ADDR"), TLS: os.Getenv("GORUN_TLS") == "True", Log: slog.Default(),
		},
		notifyTimeout: core.NotifyTimeout, tuning: os.Getenv("GORUN_COMM_TUNE"), connections: os.Getenv("GORUN_COMM_CONNECTIONS"), flightOnQuit: true,
	}
	for _, o := range opts {
		o.set(&c)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// check refuses settings that are wrong for any group, and parses those that are text.
func (c *config) check() (err error) {
	if c.tuning != "" {
		if c.Tuning, err = core.ParseTuning(c.tuning); err != nil {
			return err
		}
	}
	if c.connections != "" && c.connections != bootstrap.Auto {
		c.Connections, err = strconv.Atoi(c.connections)
		if err != nil || c.Connections < 1 || c.Connections > tcp.MostConnections {
			return fmt.Errorf("%q connections: want auto or 1 to %d (GORUN_COMM_CONNECTIONS)", c.connections, tcp.MostConnections)
		}
	}
	switch {
	case c.Timeout <= 0:
		return fmt.Errorf("timeout %v: want a positive duration", c.Timeout)
	case c.objectLimit < 0 || c.objectLimit > math.MaxInt32:
		return fmt.Errorf("object limit %d: want 0 to %d bytes", c.objectLimit, math.MaxInt32)
	}
	return nil
}

// bind binds this process to its share of the processors, if its agent has told it one: then several ranks are on this machine.
func (c *config) bind() error {
	err := affinity.Bind(os.Getenv(affinity.Variable))
	if wrong, ok := errors.AsType[*affinity.ShareError](err); ok {
		return wrong
	}
	if err != nil { // ranks that are not bound are slower, and no worse
		c.Log.Debug("comm: this rank is not bound to its processors", "error", err)
	}
	return nil
}
