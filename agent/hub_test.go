package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/gorun/gorun/rendezvous"
)

// A hub is the rendezvous of several agents in one process: a round forms when all that have not left have joined.
type hub struct {
	mu          sync.Mutex
	size        int // nodes that have not left
	maxRestarts int
	restarts    int
	number      int // of the newest round
	why         string
	waiting     []*seat
	ends        []func(error) error // of the current round, one for each node
	succeeded   int                 // nodes, in the current round
	closed      *rendezvous.ClosedError
}

// A seat is one node's view of the hub.
type seat struct {
	*hub
	node rendezvous.Node
	got  chan *rendezvous.Round
	left bool
}

func (s *seat) Join(ctx context.Context, self rendezvous.Node) (*rendezvous.Round, error) {
	s.mu.Lock()
	if s.closed != nil {
		defer s.mu.Unlock()
		return nil, s.closed
	}
	s.node, s.got = self, make(chan *rendezvous.Round, 1)
	s.waiting = append(s.waiting, s)
	s.form()
	s.mu.Unlock()
	select {
	case round := <-s.got:
		return round, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (h *hub) form() {
	if len(h.waiting) < h.size {
		return
	}
	slices.SortFunc(h.waiting, func(a, b *seat) int { return strings.Compare(a.node.ID, b.node.ID) })
	h.number++
	r := rendezvous.Round{ID: h.number, Size: len(h.waiting), Restarts: h.restarts, Why: h.why}
	var nodes []rendezvous.Node
	for _, s := range h.waiting {
		nodes = append(nodes, s.node)
	}
	places := rendezvous.Assign(nodes)
	h.ends, h.succeeded = nil, 0
	for i, s := range h.waiting {
		r.Self, r.Node, r.Place = i, s.node, places[i]
		round, end := rendezvous.Begin(r, nil)
		h.ends = append(h.ends, end)
		s.got <- round
	}
	h.waiting = nil
}

func (h *hub) end(why error) {
	for _, end := range h.ends {
		_ = end(why)
	}
}

func (s *seat) Report(_ context.Context, round *rendezvous.Round, failure *rendezvous.Failure) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case round.Err() != nil:
	case failure == nil:
		if s.succeeded++; s.succeeded == s.size {
			s.closed = &rendezvous.ClosedError{}
			s.end(s.closed)
		}
	case failure.Final || s.restarts == s.maxRestarts:
		s.closed = closedBy(failure)
		s.end(s.closed)
	default:
		s.restarts++
		s.why = fmt.Sprintf("%s; restart %d of %d", failure, s.restarts, s.maxRestarts)
		s.end(&rendezvous.NewRoundError{Why: s.why, Failure: failure})
	}
	return nil
}

func (s *seat) Leave(_ context.Context, _ *rendezvous.Round, why error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave(why)
	return nil
}

func (s *seat) Close(_ context.Context, why error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave(why)
	return nil
}

// Nobody steers it.
func (s *seat) Restart(context.Context, *rendezvous.Round, string) error { return errSteered }
func (s *seat) Scale(context.Context, int, int) error                    { return errSteered }
func (s *seat) Drain(context.Context, *rendezvous.Round) error           { return nil }
func (s *seat) HostsAlone() bool                                         { return false }

func (s *seat) Limits() (least, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size, s.size
}

var errSteered = errors.New("it cannot be steered")

func (s *seat) leave(why error) {
	if s.left {
		return
	}
	s.left = true
	if s.size--; s.closed == nil {
		s.why = fmt.Sprintf("%s has left: %v", s.node.ID, why)
		s.end(rendezvous.ErrNewRound)
		s.form()
	}
}
