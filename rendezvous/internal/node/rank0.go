package node

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/gorun/gorun/rendezvous"
)

const (
	callInterval   = 100 * time.Millisecond // between two calls of rank 0's agent
	unreachedAfter = 5 * time.Second        // the leader is told that it cannot be reached
	masterTimeout  = time.Second            // for its machine to answer in its stead
)

// entering says which Join is about to enter which round.
type entering struct{ join, round int }

// prepare does what a round needs before workers start in it, and then enters it. The node of rank 0 reserves the master port, if a
// certain one was asked for. The other nodes check that they can reach the node of rank 0; otherwise their workers would wait for it in
// vain. They call its agent, at the address that the workers will use, and by its key, to which no other agent answers. When the
// agent has answered, they stop calling it. If it has died, the round usually ends before they give up.
func (b *member) prepare(doc *roundDoc, a assignment) {
	j := b.joins[0]
	way := entering{j.id, doc.ID}
	switch {
	case a.Rank == 0 && j.port == 0:
		if b.entering == nil || *b.entering != way {
			b.entering = &way
			b.emit(reservePort{j.id, j.self.Reach(), b.config.MasterPort})
		}
	case a.Rank == 0 || doc.Rank0.Key == b.rank0:
		b.enter(doc, a)
	case b.entering == nil || *b.entering != way:
		b.stopCalling()
		b.entering = &way
		b.emit(start{"rank 0", callRank0{j.id, doc.ID, j.self, doc.Rank0, max(b.config.JoinTimeout, b.config.failureTimeout())}})
	}
}

func (e portReserved) apply(m *stateMachine) {
	b := &m.member
	if b.entering == nil || b.entering.join != e.join {
		return
	}
	b.entering = nil
	if e.err != nil {
		b.withdraw(e.join, e.err)
		return
	}
	b.joins[0].port = e.port
	m.follow()
}

// stopCalling: there is no sense in calling any more.
func (b *member) stopCalling() {
	if b.entering != nil {
		b.entering = nil
		b.emit(stop{"rank 0"})
	}
}

// apply tells the leader if rank 0's agent cannot be reached, which may be its fault: the next round is without one of the two.
func (e rank0Called) apply(m *stateMachine) {
	b := &m.member
	switch {
	case e.err == nil:
		b.entering, b.rank0 = nil, e.rank0.Key
		m.follow()
	case e.last:
		b.entering = nil
		b.withdraw(e.join, e.err)
	default:
		b.show(fmt.Sprintf("round %d: %v", e.round, e.err))
		if e.unreachable && e.lasted >= unreachedAfter && !m.conn.isAway() {
			b.monitor(e.rank0.peerDoc, true)
		}
	}
}

// enter gives the round to the Join that has waited for it.
func (b *member) enter(doc *roundDoc, a assignment) {
	b.endRound(rendezvous.ErrNewRound)
	j := b.joins[0]
	b.joins = b.joins[1:]
	b.updateSelf()
	b.round = doc.ID
	b.monitorPeers(doc)
	b.emit(enterRound{j.id, rendezvous.Round{
		ID: doc.ID, Size: doc.Size, Self: a.Rank, Node: j.self, Place: a.Place,
		Master: rendezvous.Master{Addr: doc.Rank0.Addr, Port: doc.Rank0.Port},
		Token:  doc.Token, Restarts: doc.Restarts, Cause: doc.Cause, Why: doc.Why, Gone: doc.Gone,
	}})
}

// An UnreachableError says that a node cannot reach the one of rank 0, where the workers are to meet.
type UnreachableError struct {
	Self   rendezvous.Node
	Master string // host of that one
	Agent  string // what was called
	Err    error
}

// Error is one line, with what to do.
func (e *UnreachableError) Error() string {
	if errors.Is(e.Err, syscall.EMFILE) || errors.Is(e.Err, syscall.ENFILE) { // the address may be right
		return fmt.Sprintf("%s cannot call %s, where rank 0 is: %s: raise the limit of open files (ulimit -n), or end the processes that use them",
			e.Self.Host, e.Master, e.cause())
	}
	return fmt.Sprintf("%s cannot reach %s, where rank 0 is, at %s: %v; give %s an address that the others reach, with --local-addr",
		e.Self.Host, e.Master, e.Agent, e.cause(), e.Master)
}

// cause leaves out what Error says already.
func (e *UnreachableError) cause() string {
	var op *net.OpError
	if !errors.As(e.Err, &op) {
		return e.Err.Error()
	}
	if to, ok := op.Addr.(*net.TCPAddr); ok && to.IP.IsLoopback() && e.Self.Host != e.Master {
		return fmt.Sprintf("that is %s, which is %s itself", to.IP, e.Self.Host)
	}
	return op.Err.Error()
}

// Unwrap returns Err.
func (e *UnreachableError) Unwrap() error { return e.Err }

// ExitCode is gorun's for want of a round.
func (e *UnreachableError) ExitCode() int { return rendezvous.CodeUnformed }
