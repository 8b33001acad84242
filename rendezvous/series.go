package rendezvous

import (
	"errors"
	"fmt"
	"io"
	"sync"
)

// series is the rounds that one process forms by itself, one current at a time, and the job's restart budget.
type series struct {
	maxRestarts int

	mu       sync.Mutex
	last     int                   // number of the newest round
	restarts int                   // used so far
	why      string                // a round follows the current one; empty: none is known to
	current  *Round                // nil: none
	end      func(why error) error // of current
	store    io.Closer             // served for current; nil: none
	closed   *ClosedError          // nil: the job goes on
}

// next ends the current round and begins the one that form describes; form may hold a port and a store for it,
// and has let go of them if it fails.
func (s *series) next(form func() (r Round, port, store io.Closer, err error)) (*Round, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed != nil {
		return nil, s.closed
	}
	if s.current != nil && s.why == "" {
		s.why = "this node has joined again"
	}
	if err := s.finish(ErrNewRound); err != nil {
		return nil, err
	}
	r, port, store, err := form()
	if err != nil {
		return nil, err
	}
	s.last++
	r.ID, r.Restarts, r.Why = s.last, s.restarts, s.why
	s.current, s.end = Begin(r, port)
	s.store, s.why = store, ""
	return s.current, nil
}

// report ends the round, unless it is over. Its store is served until the next one, or close.
func (s *series) report(round *Round, failure *Failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if round.Err() == nil { // it is the current one
		_ = s.end(s.decide(failure)) // finish says what has failed
	}
}

// decide returns why the round is over.
func (s *series) decide(failure *Failure) error {
	switch {
	case failure == nil:
		s.closed = &ClosedError{}
	case failure.Final || s.restarts >= s.maxRestarts:
		s.closed = &ClosedError{Outcome{Code: failure.Code, Failure: failure}}
	default:
		s.restarts++
		s.why = fmt.Sprintf("%s; restart %d of %d", failure, s.restarts, s.maxRestarts)
		return ErrNewRound
	}
	return s.closed
}

// close ends the current round, and the series unless a report has.
func (s *series) close(why error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed == nil {
		s.closed = &ClosedError{OutcomeOf(why)}
	}
	return s.finish(s.closed)
}

func (s *series) finish(why error) error {
	var portErr, storeErr error
	if s.current != nil {
		portErr = s.end(why)
	}
	if s.store != nil {
		storeErr = s.store.Close()
	}
	s.current, s.store = nil, nil
	return errors.Join(portErr, storeErr)
}
