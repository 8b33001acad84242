package comm

import (
	"context"
	"errors"
	"fmt"

	"github.com/gorun/gorun/comm/internal/bootstrap"
	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/membership"
	"github.com/gorun/gorun/comm/internal/worker"
)

// DefaultTimeout is the limit of one operation, and of Init, unless [WithTimeout] says otherwise: 30 minutes.
const DefaultTimeout = worker.DefaultTimeout

// Init joins the world and returns it, once every rank has come. Without options it takes rank and size from the environment that gorun (or
// torchrun) sets for its workers, or else from that of a resource manager that has started this process: Slurm, Open MPI, MPICH or Flux.
// [WithInitMethod] has other ways to meet. If ranks do not come before ctx ends or the timeout is over, the error is a [MissingRanksError].
// After the world has been closed, Init joins the next world of the same ranks.
func Init(ctx context.Context, opts ...Option) (*Group, error) {
	w, err := process.Init(ctx, func(c *config) { setAll(c, opts) })
	return joined("Init", w, err)
}

// joined returns the world w that op has joined, or err, because of which it has not, as an error of this package.
func joined(op string, w *worker.World, err error) (*Group, error) {
	if err == nil {
		return newGroup(w, w.All, w.Objects), nil
	}
	api := notJoined(op, err)
	if e, ok := errors.AsType[*worker.JoinError](err); ok {
		process.Note(api, e.OfRound)
	}
	return nil, api
}

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
