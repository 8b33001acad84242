package comm

import (
	"context"
	"errors"
	"fmt"

	"github.com/gorun/gorun/comm/internal/bootstrap"
	"github.com/gorun/gorun/comm/internal/core"
)

// Init joins the world and returns it, once every rank has come. Without options it takes rank and size from the environment that gorun (or
// torchrun) sets for its workers. [WithInitMethod] has other ways to meet. If ranks do not come before ctx ends or the timeout is over, the
// error is a [MissingRanksError]. After the world has been closed, Init joins the next world of the same ranks.
func Init(ctx context.Context, opts ...Option) (*Group, error) {
	cfg := newConfig(opts)
	if err := cfg.check(); err != nil {
		return nil, &ArgumentError{Op: "Init", Err: err}
	}
	w, err := bootstrap.Join(ctx, cfg.Config)
	if err != nil {
		return nil, notJoined(err)
	}
	g, err := newWorld(cfg, w)
	if err != nil {
		return nil, fmt.Errorf("comm: Init: %w", err)
	}
	if cfg.flightOnQuit {
		g.world.leave = append(g.world.leave, onQuit.enter())
	}
	return g, nil
}

// notJoined returns err, because of which this rank has not met the others, as an error of this package.
func notJoined(err error) error {
	if e, ok := errors.AsType[*core.Error](err); ok {
		return public(e)
	}
	if m, ok := errors.AsType[*bootstrap.MissingError](err); ok {
		err = &MissingRanksError{Missing: m.Missing, Size: m.Size, Where: m.Where, After: m.After, Err: m.Err}
	}
	return fmt.Errorf("comm: Init: %w", err)
}
