// Package rendezvous decides which nodes are in a round. It knows nodes and ranks, and nothing of processes.
//
// A [Rendezvous] has two verbs: Join blocks until this node is in a formed [Round], Close ends the job. A Round
// is a value: its nodes, ranks, master and token never change. What can happen to it is that it is over, which
// Done tells. Then the way on is to Join again.
//
//	round, err := r.Join(ctx, self)     // the workers' ranks come from Assign(round.Nodes)[round.Self]
//	... start the workers, then round.Started() ...
//	<-round.Done()                      // a newer round, or the job is closed: see round.Err
//
// Every implementation guarantees, and rendezvoustest checks:
//
//  1. Rounds are numbered upward from 1; a number is never used twice. One round is current at a time: once a
//     Join has formed a round, the one before is over.
//  2. Self's entry in Nodes is what was passed to Join.
//  3. On the node of rank 0 the master port is held for this round from Join until Started, so that nothing
//     else on the machine takes it; a worker that binds it with SO_REUSEADDR (Go, Python and torch do) need not wait.
//  4. After Close, the current round is over with ErrClosed, every Join fails with ErrClosed, and nothing that
//     the rendezvous opened is left.
//
// [Local] serves one node, [Static] several nodes whose command lines say everything: neither sends a byte.
package rendezvous

import (
	"context"
	"errors"
)

var (
	// ErrClosed ends a round, and fails a Join, when the job is over.
	ErrClosed = errors.New("the job is closed")
	// ErrNewRound ends a round when a newer one has formed.
	ErrNewRound = errors.New("a newer round has formed")
)

// A Rendezvous gathers nodes into rounds. Its methods may be called from several goroutines.
type Rendezvous interface {
	// Join blocks until self is in a formed round, ctx ends, or the job is closed (ErrClosed).
	Join(ctx context.Context, self Node) (*Round, error)
	// Close ends the job, recording why: nil means success. It is idempotent; the first reason stays.
	Close(ctx context.Context, why error) error
}

// A Node is what one agent brings into a round.
type Node struct {
	ID       string // tells the nodes of a job apart in logs and errors
	Host     string // where others reach it; empty: not known
	NodeRank int    // the place asked for, from 0; negative: any
	Nproc    int    // workers, at least 1
	Role     string // of all its workers
}

// A Master is where rank 0 listens for the other workers.
type Master struct {
	Addr string // a host name or an IP address, without brackets
	Port int    // 1 to 65535
}
