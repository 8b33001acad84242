package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/endpoint"
	"github.com/gorun/gorun/comm/internal/shm/heap"
	"github.com/gorun/gorun/env"
)

// ErrCannotRejoin is the error of [Process.Rejoin] where workers do not outlive a round.
var ErrCannotRejoin = errors.New("this process cannot rejoin")

// Rejoin ends the round, unless it is over, and joins the world of the next one. reason says why this process ends the
// round, in one line, and which ranks have not come to it, if that is why; failure is nil if no call has failed.
func (p *Process) Rejoin(ctx context.Context, reason func(failure error) (why string, missing []int)) (*World, error) {
	end, err := p.beginRejoin()
	if err != nil {
		return nil, err
	}
	defer end()
	p.mu.Lock()
	set := p.set
	p.mu.Unlock()
	if err := p.next(ctx, NewConfig(set), reason); err != nil {
		return nil, err
	}
	return p.join(ctx, "Rejoin", NewConfig(set)) // the environment is that of the next round
}

// beginRejoin begins what end ends: one call of Rejoin. It returns why this process cannot rejoin.
func (p *Process) beginRejoin() (end func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.rounds == nil:
		return nil, ErrCannotRejoin
	case p.rejoining:
		return nil, &core.Error{Kind: core.BadArgument, Op: "Rejoin", Err: errors.New("another call of it is under way")}
	}
	p.rejoining = true
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.rejoining = false
	}, nil
}

// WhyNot returns why a process that is not connected to an agent cannot rejoin.
func WhyNot() error {
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

// next ends the round, unless it is over, waits for the next one until ctx ends or the timeout is over, closes the
// worlds of this one, and sets the environment of the next one.
func (p *Process) next(ctx context.Context, cfg *Config, reason func(failure error) (why string, missing []int)) error {
	err := cfg.polled(ctx, func(ctx context.Context) error { return p.await(ctx, cfg, reason) })
	if err != nil {
		return err
	}
	round, err := p.membership().Enter()
	if err != nil {
		return err
	}
	p.Note(nil, true)
	for _, name := range env.Names() {
		if value, ok := round.Env[name]; ok {
			if err := os.Setenv(name, value); err != nil {
				return err
			}
		}
	}
	return nil
}

// await waits for the next round, and closes the worlds of this one. When it returns nil, no operation of this round
// uses any memory. It does not close the worlds before: a rank that does not know yet that the round is over would take
// this rank's end for the cause.
func (p *Process) await(ctx context.Context, cfg *Config, reason func(error) (string, []int)) error {
	rounds := p.membership()
	ctx, cancel := context.WithTimeoutCause(ctx, cfg.Timeout, fmt.Errorf("%w after %v", diagnosis.ErrTimeout, cfg.Timeout))
	defer cancel()
	defer time.AfterFunc(time.Second, func() {
		cfg.Log.Info("comm: Rejoin waits for the next round", "over", rounds.Round().Over() != nil)
	}).Stop()
	_ = p.revoke(ctx, reason) // if the agent is gone, Await says so
	if err := rounds.Await(ctx); err != nil {
		return err
	}
	for _, w := range p.ofRound() {
		p.detach(w)
		w.onFinal()           // or Close might come first, and tell the others that this rank leaves
		_, _ = w.Close(w.All) // it has failed, and its errors are known
	}
	for _, m := range []*heap.Detached{&p.memory, &p.rest, &p.unfreed} {
		if err := m.Await(ctx); err != nil {
			return fmt.Errorf("a call on a group of the round before has not returned: %w", err)
		}
	}
	return nil
}

// revoke asks the agent to end the round, unless it is over. If no call has failed, another rank may be about to end: elastic.Run, for
// example, rejoins when a new rank has another State. Then revoke first waits for the agent's word on that.
func (p *Process) revoke(ctx context.Context, reason func(error) (string, []int)) error {
	p.mu.Lock()
	rounds, failure := p.rounds, p.failure
	p.mu.Unlock()
	round := rounds.Round()
	if failure == nil {
		select {
		case <-round.Final():
		case <-time.After(endpoint.RevokeTimeout):
		case <-ctx.Done():
		}
	}
	switch {
	case round.Over() != nil:
		return nil
	case ctx.Err() != nil: // a caller that does not wait for the next round must not end this one
		return context.Cause(ctx)
	}
	why, missing := reason(failure)
	return rounds.Revoke(why, missing...)
}
