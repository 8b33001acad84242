package comm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/gorun/gorun/comm/internal/bootstrap"
	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/endpoint"
	"github.com/gorun/gorun/comm/internal/membership"
	"github.com/gorun/gorun/comm/internal/shm/heap"
	"github.com/gorun/gorun/env"
	"github.com/gorun/gorun/env/rounds"
)

// ErrRoundOver is wrapped by the errors of calls that end because gorun is forming another round, and no rank has died as far as is known:
// nodes come or go, or a rank has called Rejoin. [Rejoin] returns the next world.
var ErrRoundOver = errors.New("gorun is forming another round")

// Rejoin returns the world of the next round. A job started with gorun --on-failure=replace survives the failure of a worker: gorun
// starts it again, and the calls of the others on every group fail with a [PeerError]. They, and in the new process [Init], then meet in a
// new world, in which a rank may have another number, and there may be more ranks, or fewer. There you make groups and meshes again, by the
// calls that have made them before.
//
// If the round is not over, Rejoin ends it for all ranks. That is so if a rank has left that others need, an operation has timed out, or
// nothing has failed at all. The calls of the other ranks then fail with [ErrRoundOver], and a message that names this rank and its last
// error. It counts as a failure: gorun forms another round if --max-restarts allows, and ends the job otherwise. A rank that has exited
// is started again. If ctx ends first, Rejoin leaves the round as it is.
//
// Rejoin waits for the next round, closes the world of this one with all its groups, sets the variables of this process's environment that
// Init reads (see package env), and does what Init did, with the same options; but if these had the token of that round, it takes that of
// the new one. Memory of [Alloc] stays valid, with its contents, and belongs to the next world: free what you do not need there. Rejoin waits
// for the round until ctx ends or the timeout is over, and then as long for the other ranks.
//
// Rejoin can be called whenever Init has been, even if Init has failed because the round ended meanwhile; if that happens to Rejoin, call it
// again. All ranks of a node have to call it within gorun's --replace-timeout, or they are started again themselves. They are started again
// sooner if another rank of the node gets a [MissingRanksError] that names them, and calls Rejoin again.
//
// Where workers do not outlive a round, Rejoin returns a [NoRejoinError] with the last failure of a call, or of Init. If there was none, it
// returns an [ArgumentError].
func Rejoin(ctx context.Context) (*Group, error) {
	options, err := beginRejoin()
	if err != nil {
		return nil, err
	}
	defer endRejoin()
	cfg := newConfig(options)
	if err := awaitRound(ctx, &cfg); err != nil {
		return nil, fmt.Errorf("comm: Rejoin: %w", err)
	}
	round, err := life.rounds.Enter()
	if err != nil {
		return nil, fmt.Errorf("comm: Rejoin: %w", err)
	}
	life.failure.Store(nil)
	for _, name := range env.Names() {
		if value, ok := round.Env[name]; ok {
			if err := os.Setenv(name, value); err != nil {
				return nil, fmt.Errorf("comm: Rejoin: %w", err)
			}
		}
	}
	return join(ctx, "Rejoin", options)
}

// beginRejoin returns the options of Init, or why this process cannot rejoin.
func beginRejoin() ([]Option, error) {
	life.mu.Lock()
	defer life.mu.Unlock()
	switch {
	case life.rounds == nil:
		return nil, noRejoin()
	case life.rejoining:
		return nil, badArgument("Rejoin", "another call of it is under way")
	}
	life.rejoining = true
	return life.options, nil
}

func endRejoin() {
	life.mu.Lock()
	defer life.mu.Unlock()
	life.rejoining = false
}

// awaitRound ends the round, unless it is over, waits for the next one, and closes the world of this one. When it
// returns nil, no operation of this round uses any memory. It does not close that world before: a rank that does not
// know yet that the round is over would take this rank's end for the cause.
func awaitRound(ctx context.Context, cfg *config) error {
	ctx, cancel := context.WithTimeoutCause(ctx, cfg.Timeout, fmt.Errorf("%w after %v", ErrTimeout, cfg.Timeout))
	defer cancel()
	defer time.AfterFunc(time.Second, func() {
		cfg.Log.Info("comm: Rejoin waits for the next round", "over", life.rounds.Round().Over() != nil)
	}).Stop()
	_ = life.revoke(ctx) // if the agent is gone, Await says so
	if err := life.rounds.Await(ctx); err != nil {
		return err
	}
	for _, g := range life.worlds.all() {
		life.detach(g.world)
		g.world.onFinal() // or Close might come first, and tell the others that this rank leaves
		_ = g.Close()     // it has failed, and its errors are known
	}
	for _, m := range []*heap.Detached{&life.memory, &life.rest} {
		if err := m.Await(ctx); err != nil {
			return fmt.Errorf("a call on a group of the round before has not returned: %w", err)
		}
	}
	return nil
}

// noRejoin returns the error of Rejoin in a process that cannot rejoin.
func noRejoin() error {
	if failure := life.others.Load(); failure != nil {
		return &NoRejoinError{Why: whyNoRejoin(), After: *failure}
	}
	return &ArgumentError{Op: "Rejoin", Err: whyNoRejoin()}
}

// whyNoRejoin returns why this process cannot rejoin.
func whyNoRejoin() error {
	_, isWorker := os.LookupEnv("RANK")
	_, isGorun := os.LookupEnv("GORUN_ROUND")
	switch {
	case os.Getenv("GORUN_ROUND_SOCKET") != "":
		return errors.New("this process has not called Init with env://, the usual method, yet")
	case isGorun:
		return errors.New("gorun starts all workers again when one fails: use --on-failure=replace")
	case isWorker:
		return errors.New("the launcher of this process ends all workers when one fails: gorun --on-failure=replace does not")
	default:
		return errors.New("this process was not started by gorun --on-failure=replace")
	}
}

// awaitOver returns the end of the round if that is why a rank has not met the others, and otherwise nil. err is what the rank found. The
// agent may not have said yet that the round is over, so awaitOver waits for that for a while.
func awaitOver(during context.Context, err error) *rounds.Round {
	m, missing := errors.AsType[*bootstrap.MissingError](err)
	missing = missing && !m.Serves // if the store does not answer, rank 0 may have died, and the agent is about to say so
	if _, wrong := errors.AsType[*core.Error](err); !missing && !wrong && !errors.Is(err, context.Canceled) {
		select {
		case <-during.Done():
		case <-time.After(endpoint.RevokeTimeout):
		}
	}
	if over, ok := errors.AsType[*membership.OverError](context.Cause(during)); ok {
		return &over.Round
	}
	return nil
}
