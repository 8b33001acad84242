package rendezvous

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
)

// A Round is one fixed membership: the same nodes in the same order, the same master and the same token for
// all its members, for as long as it lasts. Its fields are read only.
type Round struct {
	ID        int    // from 1 upward
	Nodes     []Node // in rank order
	Self      int    // index of this node
	Master    Master
	Token     string // secret by which the workers of the round know each other; empty: none
	StoreAddr string // host:port of a store that the agent serves for this round; empty: none
	Restarts  int    // of the job's budget, used before this round
	Why       string // this round follows another; empty: it is the first

	started func()
	done    chan struct{} // closed when the round is over; err is set before
	err     error
}

// Done is closed when the round is over. A quiet network is no reason: only evidence ends a round.
func (r *Round) Done() <-chan struct{} { return r.done }

// Err says why the round is over (ErrNewRound, ErrClosed, ...), and is nil before Done is closed.
func (r *Round) Err() error {
	select {
	case <-r.done:
		return r.err
	default:
		return nil
	}
}

// Started says that this node's workers have been started, so that the master port is no longer held for them.
// It is idempotent, and implied by the end of the round.
func (r *Round) Started() { r.started() }

// Begin makes a round of r's fields, for implementations of Rendezvous. port may be nil, and is closed by
// Started. The function returned ends the round, once, and reports whether closing the port failed.
func Begin(r Round, port io.Closer) (round *Round, end func(why error) error) {
	var portErr error
	release := sync.OnceFunc(func() {
		if port != nil {
			portErr = port.Close()
		}
	})
	r.Nodes = slices.Clone(r.Nodes)
	r.started = release
	r.done = make(chan struct{})
	round = &r
	var once sync.Once
	return round, func(why error) error {
		release()
		once.Do(func() {
			round.err = why
			close(round.done)
		})
		return portErr
	}
}

// series is the rounds that one process forms by itself, one current at a time.
type series struct {
	mu     sync.Mutex
	last   int                   // number of the newest round
	end    func(why error) error // ends the current round; nil: none
	store  io.Closer             // served for the current round; nil: none
	closed error                 // wraps ErrClosed once the job is closed
}

// next ends the current round and begins the one that form describes; form may hold a port and a store for it,
// and has let go of them if it fails.
func (s *series) next(form func() (r Round, port, store io.Closer, err error)) (*Round, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed != nil {
		return nil, s.closed
	}
	if err := s.finish(ErrNewRound); err != nil {
		return nil, err
	}
	r, port, store, err := form()
	if err != nil {
		return nil, err
	}
	s.last++
	r.ID = s.last
	round, end := Begin(r, port)
	s.end, s.store = end, store
	return round, nil
}

// close ends the current round, and the series.
func (s *series) close(why error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed != nil {
		return nil
	}
	s.closed = ErrClosed
	if why != nil {
		s.closed = fmt.Errorf("%w: %w", ErrClosed, why)
	}
	return s.finish(s.closed)
}

func (s *series) finish(why error) error {
	var portErr, storeErr error
	if s.end != nil {
		portErr = s.end(why)
	}
	if s.store != nil {
		storeErr = s.store.Close()
	}
	s.end, s.store = nil, nil
	return errors.Join(portErr, storeErr)
}
