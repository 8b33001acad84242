package job

import (
	"context"
	"log/slog"
	"sync"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/agent/workergroup"
	"github.com/gorun/gorun/launcher"
	"github.com/gorun/gorun/launcher/guard"
)

// replace makes config start workers that may outlive their round. Call end when the job is over.
func (p *Plan) replace(config *agent.Config, dir string, logger *slog.Logger) (end func()) {
	var spare spareGuard
	config.Spec.Console = launcher.NewConsole(&config.Spec)
	group := workergroup.New(workergroup.Config{
		Dir: dir, Timeout: p.ReplaceTimeout, Warn: func(text string) { logger.Warn(text) },
		Start: func(ctx context.Context, spec launcher.Spec) (workergroup.WorkerGang, error) {
			if g := spare.take(); g != nil {
				ahead := spec
				ahead.Guard = g
				if gang, err := launcher.Start(ctx, ahead); err == nil {
					return gang, nil
				} // or the guard has died meanwhile
			}
			gang, err := launcher.Start(ctx, spec)
			if err != nil {
				return nil, err
			}
			return gang, nil
		},
	})
	config.Start = func(ctx context.Context, spec launcher.Spec) (agent.Gang, error) {
		gang, err := group.Start(ctx, spec)
		if err != nil {
			return nil, err
		}
		spare.refill()
		return gang, nil
	}
	return spare.close
}

// A spareGuard is a guard that is started ahead, so that a worker which replaces another one starts at once.
type spareGuard struct {
	mu       sync.Mutex
	guard    *guard.Guard // nil: there is none
	starting bool
	closed   bool
	starts   sync.WaitGroup
}

// take returns the guard; nil: there is none, and the gang has to start its own.
func (s *spareGuard) take() *guard.Guard {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.guard
	s.guard = nil
	return g
}

// refill starts another guard, in the background, if there is none. A failure is not reported: the gang that finds no guard tries again.
func (s *spareGuard) refill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.guard != nil || s.starting || s.closed {
		return
	}
	s.starting = true
	s.starts.Go(func() {
		g, _ := guard.Start(1)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.starting, s.guard = false, g
	})
}

// close ends the guard that nobody has taken.
func (s *spareGuard) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.starts.Wait()
	if g := s.take(); g != nil {
		g.Close()
	}
}
