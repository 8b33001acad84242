package elastic

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/gorun/gorun/comm"
	"github.com/gorun/gorun/comm/internal/checkpoint"
)

// Run joins the world, sets the variables of state to the same contents on all ranks, and calls f. In the first world these are the contents
// on rank 0. If f returns because the world has changed, Run joins the next one, sets the variables to the newest commit, and calls f again.
// It does so as often as that happens: gorun ends the job when there have been more failures than --max-restarts allows.
//
// Run assumes that the world has changed if f's error is or wraps a [comm.PeerError], [comm.ErrRoundOver], a [comm.MissingRanksError], or a
// [comm.AbortError] of another rank. Any other error of f is the program's own: Run closes the world and returns the error, and the variables
// stay as f has left them. If f returns nil, Run waits until it has done so on all ranks, closes the world and returns nil. If a rank dies before
// that, f is called once more, with the newest commit. So f has to go on from any commit, the last one too. If f panics, the world fails for
// the other ranks.
//
// The context of f ends when f returns. The world is Run's: f does not close it, and calls neither [comm.Init] nor [comm.Rejoin]. A program
// calls Run once, and calls nothing of package comm before: a rank that is started again begins anew, and would wait there for the others.
// Run forgets commits that were made before it. Options are those of Init.
//
// When f returns, none of its goroutines may use the variables. If f returns an error, it need not have waited for every [comm.Work].
//
// Where workers do not outlive a failure, with torchrun or with gorun's --on-failure=restart, Run calls f once, and returns its error.
func Run(ctx context.Context, state *State, f func(ctx context.Context, world *comm.Group) error, opts ...comm.Option) error {
	r := runner{
		init:   func(ctx context.Context) (*comm.Group, error) { return comm.Init(ctx, opts...) },
		rejoin: comm.Rejoin,
		round:  checkpoint.Round,
		run:    int(runs.Add(1)),
	}
	return r.do(ctx, state, f)
}

// runs is how many times the program has called Run.
var runs atomic.Int64

// A runner gets the worlds of Run.
type runner struct {
	init, rejoin func(ctx context.Context) (*comm.Group, error)
	round        func() uint64
	run          int // which call of Run this is in the program, from 1
}

func (r runner) do(ctx context.Context, s *State, f func(ctx context.Context, world *comm.Group) error) error {
	switch {
	case s == nil:
		return &comm.ArgumentError{Op: "elastic.Run", Err: errors.New("the State is nil")}
	case f == nil:
		return &comm.ArgumentError{Op: "elastic.Run", Err: errors.New("the function is nil")}
	}
	endPopulate, err := s.begin()
	if err != nil {
		return err
	}
	defer s.end()
	defer endPopulate()
	world, err := r.init(ctx)
	for {
		if err == nil {
			err = r.inWorld(ctx, s, world, f)
		}
		if err == nil || ctx.Err() != nil || !worldChanged(err, world) {
			return errors.Join(err, world.Close())
		}
		next, failed := r.rejoin(ctx)
		if _, impossible := errors.AsType[*comm.NoRejoinError](failed); impossible { // err is the failure, and failed says no more
			return errors.Join(err, world.Close())
		}
		if failed != nil && !worldChanged(failed, nil) {
			return errors.Join(failed, err, world.Close())
		}
		world, err = next, failed
	}
}

// inWorld does everything that Run does in one world.
func (r runner) inWorld(ctx context.Context, s *State, world *comm.Group, f func(ctx context.Context, world *comm.Group) error) error {
	if err := s.sync(ctx, world, r.round(), r.run); err != nil {
		return err
	}
	s.enter(working, world)
	defer s.enter(syncing, nil)
	if err := call(ctx, world, f); err != nil {
		return err
	}
	if err := s.await(); err != nil { // it needs the world, which is closed when all have returned
		return err
	}
	return awaitReturns(ctx, world)
}

// call calls f. If f panics, or ends its goroutine, it makes the world fail: the process may live on, and the others would wait for it.
func call(ctx context.Context, world *comm.Group, f func(ctx context.Context, world *comm.Group) error) error {
	during, cancel := context.WithCancel(ctx)
	returned := false
	defer func() {
		cancel()
		if !returned {
			world.Abort(errPanic)
			_ = world.Close()
		}
	}()
	err := f(during, world)
	returned = true
	return err
}

// errPanic is the error that the other ranks get.
var errPanic = errors.New("the function of elastic.Run has panicked")

// awaitReturns waits until f has returned nil on all ranks. It is not a barrier, which f may call as well: a rank that is still in f has to
// get an error, because its call does not match this one.
func awaitReturns(ctx context.Context, world *comm.Group) error {
	own := []byte("f has returned nil")
	err := comm.AllGather(ctx, world, make([]byte, len(own)*world.Size()), own)
	if _, is := errors.AsType[*comm.MismatchError](err); is {
		return fmt.Errorf("elastic: Run: the function has returned nil on rank %d, and goes on on others: %w", world.Rank(), err)
	}
	return err
}

// worldChanged reports whether err means that ranks have gone, or come. world is nil if err is why there is none.
func worldChanged(err error, world *comm.Group) bool {
	var (
		peer    *comm.PeerError
		missing *comm.MissingRanksError
		abort   *comm.AbortError
	)
	return errors.Is(err, comm.ErrRoundOver) || errors.As(err, &peer) || errors.As(err, &missing) ||
		errors.As(err, &abort) && (world == nil || abort.Rank != world.Rank())
}
