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

	"github.com/gorun/gorun/comm/internal/bootstrap"
	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/membership"
	"github.com/gorun/gorun/comm/internal/transport/tcp"
	"github.com/gorun/gorun/comm/internal/worker"
)

// Init joins the world and returns it, once every rank has come. Without options it takes rank and size from the environment that gorun (or
// torchrun) sets for its workers, or else from that of a resource manager that has started this process: Slurm, Open MPI, MPICH or Flux.
// [WithInitMethod] has other ways to meet. If ranks do not come before ctx ends or the timeout is over, the error is a [MissingRanksError].
// After the world has been closed, Init joins the next world of the same ranks.
func Init(ctx context.Context, opts ...Option) (*Group, error) {
	cfg := newConfig(opts)
	rejoins, err := process.Connect(ctx, &cfg.Config)
	if err != nil {
		return nil, fmt.Errorf("comm: Init: %w", err)
	}
	if rejoins {
		setInitOptions(opts, cfg.Token)
	}
	return join(ctx, "Init", opts)
}

// join joins the world, for op.
func join(ctx context.Context, op string, opts []Option) (*Group, error) {
	cfg := newConfig(opts)
	if err := cfg.check(); err != nil {
		return nil, &ArgumentError{Op: op, Err: err}
	}
	w, err := process.Join(ctx, &cfg.Config)
	if err != nil {
		err = notJoined(op, err)
		process.Note(err, process.Rejoins(&cfg.Config))
		return nil, err
	}
	return newGroup(w, w.All, cfg), nil
}

// notJoined returns err, because of which this rank has not met the others in op, as an error of this package.
func notJoined(op string, err error) error {
	if e, ok := errors.AsType[*core.Error](err); ok {
		return public(e)
	}
	if m, ok := errors.AsType[*bootstrap.MissingError](err); ok {
		err = &MissingRanksError{Missing: m.Missing, Size: m.Size, Where: m.Where, After: m.After, Err: m.Err, onlyErr: m.Serves}
	}
	if over, ok := errors.AsType[*membership.OverError](err); ok {
		err = worker.RoundOver(over.Round)
		if died := over.Round.Died; len(died) > 0 {
			death := deathOf(died[0])
			return &PeerError{Rank: died[0].Rank, Host: died[0].Host, PID: died[0].Pid, Op: op, Err: death, Death: death, Finder: died[0].Rank}
		}
	}
	return fmt.Errorf("comm: %s: %w", op, err)
}

// DefaultTimeout is the limit of one operation, and of Init, unless [WithTimeout] says otherwise.
const DefaultTimeout = 30 * time.Minute

type config struct {
	worker.Config
	tuning      string // rules that check parses into Tuning; empty: Tuning is set
	connections string // of a stream: a number, or auto; empty: auto

	codec       Codec
	objectLimit int
}

func newConfig(opts []Option) config {
	c := config{
		Config: worker.Config{
			Config: bootstrap.Config{
				Method: "env://", Timeout: DefaultTimeout, Transport: bootstrap.Auto, Token: os.Getenv("GORUN_TOKEN"),
				Address: os.Getenv("GORUN_COMM_ADDR"), TLS: os.Getenv("GORUN_TLS") == "True", Log: slog.Default(),
			},
			NotifyTimeout: core.NotifyTimeout, FlightOnQuit: true,
		},
		tuning: os.Getenv("GORUN_COMM_TUNE"), connections: os.Getenv("GORUN_COMM_CONNECTIONS"),
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
