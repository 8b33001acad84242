package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/gorun/gorun/env/auth"
	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/env/network"
)

// StaticConfig is the same on every node, but for NodeRank. Reserve must be set.
type StaticConfig struct {
	Nodes       int    // nodes in the job, at least 1
	NodeRank    int    // of this node, 0 to Nodes-1
	Master      Master // for one node port 0 is a fresh port every round
	Token       string // must be the same on every node; empty: workers do not prove themselves, or, on one node, a new one every round
	MaxRestarts int    // budget of each node
	Reserve     ReserveFunc
	// Host serves a store on node 0 for a round whose workers know token. nil: rank 0 serves it.
	Host func(token string) (addr string, store io.Closer, err error)
}

// Static is the rendezvous of nodes whose configuration says everything. Nothing is sent: every node is taken
// to have this one's Nproc and Role, a restart or a success is this node's own affair, and ranks never change.
type Static struct {
	config StaticConfig

	mu       sync.Mutex
	last     int                   // number of the newest round
	restarts int                   // used so far
	cause    *death.Death          // as in Round, of the next one
	why      string                // as in Round, of the next one; empty: none is known to follow
	current  *Round                // nil: none
	end      func(why error) error // of current
	store    io.Closer             // served for current; nil: none
	closed   *ClosedError          // nil: the job goes on
}

// NewStatic checks config.
func NewStatic(config StaticConfig) (*Static, error) {
	if config.NodeRank < 0 || config.NodeRank >= config.Nodes {
		return nil, fmt.Errorf("node rank %d: want 0 to %d for %d nodes", config.NodeRank, config.Nodes-1, config.Nodes)
	}
	if config.Master.Addr == "" || config.Master.Port < 1 || config.Master.Port > 65535 {
		return nil, fmt.Errorf("master %q, port %d: want an address, and a port from 1 to 65535", config.Master.Addr, config.Master.Port)
	}
	return &Static{config: config}, nil
}

// NewLocal returns the rendezvous of a job on one node. Without a master in config that is loopback, and a fresh port every
// round.
func NewLocal(config StaticConfig) *Static {
	config.Nodes, config.NodeRank = 1, 0
	if config.Master.Addr == "" {
		config.Master.Addr = network.Loopback().String()
	}
	return &Static{config: config}
}

// Join forms the next round at once. On node 0 it fails if the master port is taken.
func (s *Static) Join(ctx context.Context, self Node) (*Round, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := self.Check(); err != nil {
		return nil, &MisuseError{Err: err}
	}
	if n := s.config.Nodes; n*self.Nproc > WorldLimit {
		return nil, &MisuseError{Err: fmt.Errorf("%d nodes with %d workers each: want at most %d workers", n, self.Nproc, WorldLimit)}
	}
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
	return s.form(self)
}

// form begins the next round.
func (s *Static) form(self Node) (*Round, error) {
	c := s.config
	r := Round{Size: c.Nodes, Self: c.NodeRank, Node: self, Master: c.Master, Token: c.Token, ID: s.last + 1, Restarts: s.restarts, Cause: s.cause, Why: s.why}
	r.Place = Assign(slices.Repeat([]Node{self}, r.Size))[r.Self]
	if r.Token == "" && r.Size == 1 {
		r.Token = auth.NewSecret()
	}
	var port Port
	if r.Self == 0 {
		var err error
		if port, err = r.Master.Reserve(c.Reserve); err != nil {
			return nil, err
		}
		r.Master.Port = port.Number()
		if c.Host != nil {
			if r.StoreAddr, s.store, err = c.Host(r.Token); err != nil {
				return nil, errors.Join(fmt.Errorf("serving the store of the round: %w", err), port.Close())
			}
		}
	}
	s.last, s.cause, s.why = r.ID, nil, ""
	s.current, s.end = Begin(r, port)
	return s.current, nil
}

// Report decides at once what follows on this node; other nodes do not learn of it. It does not fail. The round's store is
// served until the next round, or Close.
func (s *Static) Report(_ context.Context, round *Round, failure *Failure) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if round.Err() == nil { // it is the current one
		_ = s.end(s.decide(failure)) // finish says what has failed
	}
	return nil
}

// decide returns why the round is over.
func (s *Static) decide(failure *Failure) error {
	switch {
	case failure == nil:
		s.closed = &ClosedError{}
	case failure.Final || s.restarts >= s.config.MaxRestarts:
		s.closed = &ClosedError{Outcome{Code: failure.Code(), Failure: failure}}
	default:
		s.restarts++
		cause := failure.Death
		cause.Stderr = nil
		s.cause, s.why = &cause, fmt.Sprintf("restart %d of %d", s.restarts, s.config.MaxRestarts)
		return &NewRoundError{Why: Because(s.cause, s.why), Failure: failure}
	}
	return s.closed
}

// Restart ends the round of a job on one node. Several nodes are not connected, and so cannot begin another round together.
func (s *Static) Restart(_ context.Context, round *Round, why string) error {
	if s.config.Nodes > 1 {
		return errors.New("static nodes are not connected, so they cannot start their workers again together")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if round.Err() == nil { // it is the current one
		s.cause, s.why = nil, why
		_ = s.end(&NewRoundError{Why: why}) // finish says what has failed
	}
	return nil
}

// Scale fails: static nodes are not connected.
func (s *Static) Scale(context.Context, int, int) error {
	return errors.New("its number of nodes cannot change: only the nodes of a job over etcd may come and go")
}

// Limits returns the number of nodes.
func (s *Static) Limits() (least, most int) { return s.config.Nodes, s.config.Nodes }

// Drain has no effect: nodes are not connected.
func (s *Static) Drain(context.Context, *Round) error { return nil }

// HostsAlone is false: nothing is hosted.
func (s *Static) HostsAlone() bool { return false }

// Leave has no effect: nodes are not connected.
func (s *Static) Leave(context.Context, *Round, error) error { return nil }

// Close ends the job on this node; other nodes do not learn of it. Its error is that of a port or a store which would not close.
func (s *Static) Close(_ context.Context, why error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed == nil {
		s.closed = &ClosedError{OutcomeOf(why)}
	}
	return s.finish(s.closed)
}

// finish ends the current round.
func (s *Static) finish(why error) error {
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
