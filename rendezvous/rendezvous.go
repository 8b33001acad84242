// Package rendezvous decides which nodes are in a round, and what follows a round. It knows nodes and ranks, but
// not processes.
//
// The verbs of a [Rendezvous]: Join blocks until this node is in a formed [Round], Report reports how its workers of
// that round ended, Leave reports that they are being ended for good, Close leaves. Restart, Scale and Drain are for
// people who steer the job. A Round is a value: its nodes, ranks, master and token never change. It only ends, and then
// Done is closed: either a newer round is to form (then Join again), or the job has ended.
//
//	round, err := r.Join(ctx, self)     // the workers' ranks come from round.Place
//	... start the workers, then round.Started() ...
//	err = r.Report(ctx, round, result)  // when they have ended, or one has failed
//	<-round.Done()                      // round.Err: ErrNewRound, or a *ClosedError with the job's outcome
//
// The rendezvous has the job's one restart budget. A failure that is reported costs one restart and ends the round on
// every node; without one left, or if the failure asks for none, it closes the job. The loss of a node is free of charge, and
// so is what follows from it: workers that lose their peers fail. A job is closed as a success when all nodes of a round have
// reported success.
//
// Every implementation guarantees, and rendezvoustest checks:
//
//  1. Rounds are numbered upward from 1; a number is never used twice. One round is current at a time: once a
//     Join has formed a round, the one before is over.
//  2. Node is what was passed to Join, but for an Addr that was left to be found out.
//  3. On the node of rank 0 the master port is held for this round from Join until Started, so that nothing
//     else on the machine takes it; a worker that binds it with SO_REUSEADDR (Go, Python and torch do) need not wait.
//  4. After Close, the current round is over with ErrClosed, every Join fails with ErrClosed, and nothing that
//     the rendezvous opened is left.
//  5. Of several failures that are reported in one round the first one counts, on every node the same; or, if its worker has
//     failed because of another one whose failure is reported as well, that one (see death.RootCause).
package rendezvous

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/gorun/gorun/env/death"
)

var (
	// ErrClosed ends a round, and fails a Join, when the job is over. A *ClosedError that wraps it says how it ended.
	ErrClosed = errors.New("the job is closed")
	// ErrCredentials fails a Join if what answers at an endpoint has another secret, or other certificates. It is in a *MisuseError.
	ErrCredentials = errors.New("other credentials")
	// ErrEnded fails a Join if a job of this name has ended, of which the node cannot be. It is in a *MisuseError.
	ErrEnded = errors.New("a job of this name has ended")
	// ErrNewRound ends a round when a newer one is to form.
	ErrNewRound = errors.New("a newer round is to form")
)

// A NewRoundError ends a round, and says what has changed. It wraps ErrNewRound.
type NewRoundError struct {
	Why     string     // one line; empty: it is not known
	Failure *Failure   // of a worker, because of which the round is over; nil: there is another reason
	Gone    []GoneNode // members of the round that are lost or have left, as far as is known; see Round.Gone
}

// Error is one line.
func (e *NewRoundError) Error() string {
	if e.Why == "" {
		return ErrNewRound.Error()
	}
	return fmt.Sprintf("%v: %s", ErrNewRound, e.Why)
}

// Unwrap returns ErrNewRound.
func (e *NewRoundError) Unwrap() error { return ErrNewRound }

// A Rendezvous forms rounds of nodes. Several goroutines may call its methods.
type Rendezvous interface {
	// Join blocks until self is in a formed round, ctx ends, or the job is closed (ErrClosed).
	Join(ctx context.Context, self Node) (*Round, error)
	// Report reports how this node's workers of a round ended: nil, all of them with success; or one of them has failed, in
	// which case the others need not have ended yet. It returns when that is recorded, which is before what follows is
	// decided: round.Done tells. What is reported of a round that is over is of no consequence.
	Report(ctx context.Context, round *Round, failure *Failure) error
	// Leave tells, ahead of Close, that this node's workers of a round are being ended for good, and why. The others need
	// not wait until they lose them: if they can go on without this node, the round is over. Otherwise the round goes on,
	// but no other one waits for this node.
	Leave(ctx context.Context, round *Round, why error) error
	// Restart ends a round, and a newer one is to form. It costs no restart of the budget. Restart returns when it is recorded that this is
	// wanted, or with an error. If the round is over, it has no effect.
	Restart(ctx context.Context, round *Round, why string) error
	// Scale sets how many nodes a round may have. It returns when that is recorded. Nodes beyond the maximum become spares.
	Scale(ctx context.Context, least, most int) error
	// Limits returns how many nodes a round may have now.
	Limits() (least, most int)
	// Drain records that this node is about to leave a round, as several nodes may want to at the same time. The error is why it must not:
	// with those that leave the round too, the others were fewer than Limits allows.
	Drain(ctx context.Context, round *Round) error
	// HostsAlone reports whether the nodes meet on this node alone: without it, they cannot begin another round. It does not wait.
	HostsAlone() bool
	// Close leaves the job. It is idempotent. Where this node's leaving is the job's end, why is its reason: nil means
	// success.
	Close(ctx context.Context, why error) error
}

// WorldLimit is how many workers a round may have.
const WorldLimit = 1 << 20

// A Failure is the death of a worker that has failed, and what its node knows beside that. As JSON it has at most 64 KiB.
type Failure struct {
	death.Death
	Node  string `json:"node"`  // Node.ID
	Text  string `json:"text"`  // what there is to say of it, for people
	Final bool   `json:"final"` // it would fail again

	Unreachable []Peer      `json:"unreachable,omitempty"` // that it could not reach
	FailedPeer  *death.Peer `json:"failed_peer,omitempty"` // because of which it has failed, as it says itself; nil: none that it knows of
}

// String says who failed, and how, in one line: "rank 1 on node-a: exit code 3".
func (f *Failure) String() string { return f.Describe() }

// A Peer is a worker that another one tried to reach.
type Peer struct {
	Rank int    `json:"rank"`
	Addr string `json:"address"` // host:port at which it was called
}

// An Outcome is how a job ended. The zero value is success.
type Outcome struct {
	Code    int      `json:"code"`              // exit code of every agent
	Failure *Failure `json:"failure,omitempty"` // the root cause, if it is a worker's
	Lost    bool     `json:"lost,omitempty"`    // the node of that worker is lost, or leaves for another reason, so that another one has to tell
	Reason  string   `json:"reason,omitempty"`  // the root cause otherwise
}

// OutcomeOf returns the outcome of a job that ends because a node leaves it. why is the reason that was passed to
// Close. If why has an exit code, that is the job's exit code.
func OutcomeOf(why error) Outcome {
	if why == nil {
		return Outcome{}
	}
	o := Outcome{Code: 1, Reason: why.Error()}
	if c, ok := errors.AsType[interface {
		error
		ExitCode() int
	}](why); ok && c.ExitCode() > 0 {
		o.Code = c.ExitCode()
	}
	return o
}

// Success reports whether all workers have succeeded.
func (o Outcome) Success() bool { return o == Outcome{} }

// A ClosedError says that the job is over, and how it ended.
type ClosedError struct{ Outcome Outcome }

// Error returns one line.
func (e *ClosedError) Error() string {
	switch o := e.Outcome; {
	case o.Failure != nil:
		return fmt.Sprintf("%v: rank %d on %s failed with exit code %d", ErrClosed, o.Failure.Rank, o.Failure.Host, o.Code)
	case o.Reason != "":
		return fmt.Sprintf("%v: %s", ErrClosed, o.Reason)
	default:
		return fmt.Sprintf("%v: all workers have succeeded", ErrClosed)
	}
}

// Unwrap returns ErrClosed.
func (e *ClosedError) Unwrap() error { return ErrClosed }

// A MisuseError is what no waiting and no other attempt mends: somebody has to give other flags, or another secret.
type MisuseError struct{ Err error }

// Error is Err's.
func (e *MisuseError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *MisuseError) Unwrap() error { return e.Err }

// A Node describes an agent's node to the others in a round.
type Node struct {
	ID       string `json:"id"`             // names the node in logs and errors; no other node of the job has it
	Host     string `json:"host"`           // what people call its machine
	Addr     string `json:"addr,omitempty"` // where others reach it, a host name or an IP address; empty: Host, if it is to be known
	NodeRank int    `json:"node_rank"`      // that it asks for, from 0; negative: any
	Nproc    int    `json:"nproc"`          // workers, at least 1
	Role     string `json:"role"`           // of all its workers

	StopTimeout time.Duration `json:"stop_timeout,omitempty"` // that its agent may need to end its workers, in nanoseconds
}

// Name returns the node's name for people.
func (n Node) Name() string {
	if strings.Contains(n.ID, n.Host) {
		return n.ID
	}
	return n.ID + " on " + n.Host
}

// stopLimit is far more than workers ever have.
const stopLimit = 10 * 365 * 24 * time.Hour

// nameLimit is in bytes: what a round is written down as has room for the names of thousands of nodes.
const nameLimit = 255

// Check returns an error if the node is not valid for any job.
func (n Node) Check() error {
	if n.Nproc < 1 || n.Nproc > WorldLimit {
		return fmt.Errorf("%d workers: want 1 to %d", n.Nproc, WorldLimit)
	}
	if n.StopTimeout < 0 || n.StopTimeout > stopLimit {
		return fmt.Errorf("node %.40q: its workers have %v to end, want 0 to %v (--shutdown-timeout)", n.ID, n.StopTimeout, stopLimit)
	}
	for _, name := range []struct{ what, is string }{{"ID", n.ID}, {"host", n.Host}, {"address", n.Addr}, {"role", n.Role}} {
		if len(name.is) > nameLimit {
			return fmt.Errorf("node %.40q...: its %s has %d bytes, want at most %d", n.ID, name.what, len(name.is), nameLimit)
		}
		if strings.ContainsFunc(name.is, unicode.IsControl) || !utf8.ValidString(name.is) {
			return fmt.Errorf("node %q: its %s is %q, want one line of text", n.ID, name.what, name.is)
		}
	}
	return nil
}

// Reach returns the address at which others reach the node.
func (n Node) Reach() string { return cmp.Or(n.Addr, n.Host) }

// A Master is where rank 0 listens for the other workers.
type Master struct {
	Addr string // a host name or an IP address, without brackets
	Port int    // 1 to 65535
}
