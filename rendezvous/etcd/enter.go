package etcd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/gorun/gorun/rendezvous"
)

const (
	callPause = 100 * time.Millisecond // between two calls of rank 0's agent
	callFor   = 5 * time.Second        // before the leader is told that it cannot be reached
	passLimit = time.Second            // for its machine to answer in its stead
)

// A calling is the way of one Join into a round: rank 0's agent must have answered.
type calling struct {
	join   *join
	round  int
	cancel context.CancelFunc
}

// prepare sees to what a round needs before workers start in it, and then enters it. Where rank 0 is that is the master
// port, if it has to be a certain one. The others find out that they reach rank 0's machine, or their workers would wait
// for it in vain: they call its agent, at the address that the workers get and by a name that no other answers to. If
// that is dead, the round is over before they have lost their patience. Who has answered once is not called again.
func (l *loop) prepare(doc *roundDoc, s seat) {
	j := l.joins[0]
	if s.Rank == 0 {
		if err := j.reserve(l.config.MasterPort, l.config.Reserve); err != nil {
			l.withdraw(j, err)
			return
		}
	}
	if s.Rank == 0 || doc.Head.Key == l.met {
		l.enter(doc, s)
		return
	}
	if c := l.calling; c != nil && c.join == j && c.round == doc.ID {
		return
	}
	l.hangUp()
	ctx, cancel := context.WithTimeout(l.ctx, max(l.config.JoinTimeout, l.config.patience()))
	c := &calling{j, doc.ID, cancel}
	l.calling = c
	l.others.Go(func() {
		defer cancel()
		err := l.call(ctx, c, doc)
		l.post(func() {
			switch {
			case l.calling != c:
			case err == nil:
				l.met = doc.Head.Key
				l.enter(doc, s)
			default:
				l.withdraw(j, err)
			}
		})
	})
}

// hangUp: there is no sense in calling any more.
func (l *loop) hangUp() {
	if l.calling != nil {
		l.calling.cancel()
		l.calling = nil
	}
}

// call calls rank 0's agent until it answers, or ctx ends. If it cannot be reached, which may be its fault, the leader is told, and
// the next round is without one of the two. If it is reached and does not answer, or cannot be called for a fault of this node,
// this node has no patience for it.
func (l *loop) call(ctx context.Context, c *calling, doc *roundDoc) error {
	head, door := doc.Head, address(doc.Head.Addr, doc.Head.Door)
	var unreachable error
	for begun := time.Now(); ; {
		err := l.end.Reach(ctx, head.Key, door)
		if err == nil || filtered(err) && l.passes(ctx, address(head.Addr, head.Port)) {
			return nil
		}
		if unreachable == nil || ctx.Err() == nil {
			unreachable = &UnreachableError{Self: c.join.self, Master: head.Host, Door: door, Err: err}
		}
		lasted, unreached := time.Since(begun), isUnreachable(err)
		if pause(ctx, callPause); ctx.Err() != nil || !unreached && lasted >= l.config.patience() {
			return unreachable
		}
		reason := fmt.Sprintf("round %d: %v", doc.ID, unreachable)
		l.post(func() {
			if l.calling != c {
				return
			}
			l.say(reason)
			if unreached && lasted >= callFor && l.outage.IsZero() {
				l.callAgent(peerDoc{Key: head.Key, Host: head.Host, Addr: head.Addr, Door: head.Door}, true)
			}
		})
	}
}

// filtered reports whether a call may have failed because of a firewall: nobody has answered.
func filtered(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout() || errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.EACCES)
}

// passes reports whether addr, which is the master's, can be reached although its agent cannot: a firewall may let through
// what workers need and no more. Nobody listens there yet, so a refusal is an answer.
func (l *loop) passes(ctx context.Context, addr string) bool {
	ctx, cancel := context.WithTimeout(ctx, passLimit)
	defer cancel()
	return dialAndClose(ctx, l.dialer(), addr) == nil
}

// An UnreachableError says that a node cannot reach the one of rank 0, where the workers are to meet.
type UnreachableError struct {
	Self   rendezvous.Node
	Master string // host of that one
	Door   string // what was called
	Err    error
}

// Error is one line, with what to do.
func (e *UnreachableError) Error() string {
	if errors.Is(e.Err, syscall.EMFILE) || errors.Is(e.Err, syscall.ENFILE) { // the address may be right
		return fmt.Sprintf("%s cannot call %s, where rank 0 is: %s: raise the limit of open files (ulimit -n), or end what uses them up",
			e.Self.Host, e.Master, e.cause())
	}
	return fmt.Sprintf("%s cannot reach %s, where rank 0 is, at %s: %v; give %s an address that the others reach, with --local-addr",
		e.Self.Host, e.Master, e.Door, e.cause(), e.Master)
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
func (e *UnreachableError) ExitCode() int { return codeUnformed }

// enter gives the round to the Join that has waited for it.
func (l *loop) enter(doc *roundDoc, s seat) {
	l.endRound(rendezvous.ErrNewRound)
	j := l.joins[0]
	l.joins = l.joins[1:]
	l.ask()
	r := rendezvous.Round{
		ID: doc.ID, Size: doc.Size, Self: s.Rank, Node: j.self, Place: rendezvous.Place(s.Place),
		Master: rendezvous.Master{Addr: doc.Head.Addr, Port: doc.Head.Port},
		Token:  doc.Token, Restarts: doc.Restarts, Why: doc.Why,
	}
	port := j.port
	if s.Rank != 0 {
		l.release(port)
		port = nil
	}
	round, end := begin(r, port)
	l.round = &membership{id: doc.ID, end: end}
	l.callPeers(doc)
	j.answer <- joined{round: round}
}

// begin is rendezvous.Begin for a port that may be nil.
func begin(r rendezvous.Round, port rendezvous.Port) (*rendezvous.Round, func(error) error) {
	if port == nil {
		return rendezvous.Begin(r, nil)
	}
	return rendezvous.Begin(r, port)
}
