package rendezvous

import (
	"context"
	"fmt"
	"io"
	"slices"
)

// StaticConfig is the same on every node, but for NodeRank. Reserve must be set.
type StaticConfig struct {
	Nodes       int // nodes in the job, at least 1
	NodeRank    int // of this node, 0 to Nodes-1
	Master      Master
	Token       string // must be the same on every node; empty: workers do not prove themselves
	MaxRestarts int    // budget of each node
	Reserve     ReserveFunc
}

// Static is the rendezvous of nodes whose configuration says everything. Nothing is sent: every node is taken
// to have this one's Nproc and Role, a restart or a success is this node's own affair, and ranks never change.
type Static struct {
	config StaticConfig
	rounds series
}

// NewStatic checks config.
func NewStatic(config StaticConfig) (*Static, error) {
	if config.NodeRank < 0 || config.NodeRank >= config.Nodes {
		return nil, fmt.Errorf("node rank %d: want 0 to %d for %d nodes", config.NodeRank, config.Nodes-1, config.Nodes)
	}
	if config.Master.Addr == "" || config.Master.Port < 1 || config.Master.Port > 65535 {
		return nil, fmt.Errorf("master %q, port %d: want an address, and a port from 1 to 65535", config.Master.Addr, config.Master.Port)
	}
	return &Static{config: config, rounds: series{maxRestarts: config.MaxRestarts}}, nil
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
	return s.rounds.next(func() (Round, io.Closer, io.Closer, error) {
		r := Round{Size: s.config.Nodes, Self: s.config.NodeRank, Node: self, Master: s.config.Master, Token: s.config.Token}
		r.Place = Assign(slices.Repeat([]Node{self}, r.Size))[r.Self]
		if r.Self != 0 {
			return r, nil, nil, nil
		}
		p, err := r.Master.Reserve(s.config.Reserve)
		if err != nil {
			return Round{}, nil, nil, err
		}
		return r, p, nil, nil
	})
}

// Report decides at once what follows on this node; the others are not told. It does not fail.
func (s *Static) Report(_ context.Context, round *Round, failure *Failure) error {
	s.rounds.report(round, failure)
	return nil
}

// Leave tells nobody: nodes are not connected.
func (s *Static) Leave(context.Context, *Round, error) error { return nil }

// Close ends the job on this node; the others are not told.
func (s *Static) Close(_ context.Context, why error) error { return s.rounds.close(why) }
