package cli

import (
	"sync"

	"github.com/gorun/gorun/launcher/guard"
)

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
