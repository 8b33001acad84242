package etcd

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"syscall"
	"time"

	"github.com/gorun/gorun/rendezvous/tie"
)

const (
	// reachLimit bounds how many nodes an agent says that it cannot reach, and how many are believed.
	reachLimit = 64

	spreadTime  = 500 * time.Millisecond // over which the members of a round spread their first calls to each other
	dialTimeout = 3 * time.Second        // of a call to where a worker could not reach another one
	redialPause = 5 * time.Second        // between two of them, on average
	warnAfter   = 5 * time.Second        // without a sign of a peer, from the first call on
)

// A peer is another node that this one has to reach, or a worker there. The leader is told of one that could be reached and cannot
// any more, and of a worker that neither a worker here nor this agent can reach. Of one that could never be reached only people are
// told: there are programs whose workers talk to rank 0 alone, and firewalls to go with them.
type peer struct {
	key, host, addr string
	stop            context.CancelFunc

	begun     time.Time // the first call
	lastSeen  time.Time // zero: never
	worker    bool      // addr is a worker's
	unreached bool      // the leader is to know that this node cannot reach it
	warned    bool      // people have been told
}

// heard takes note of a sign of the peer at that time, or of a call that began then and has failed with err. tell reports whether
// people are to be told that it has.
func (p *peer) heard(at time.Time, err error) (tell bool) {
	switch {
	case err == nil:
		if at.After(p.lastSeen) {
			p.lastSeen = at
		}
		p.unreached, p.warned = false, false
	case !isUnreachable(err):
	case p.lastSeen.IsZero() && !p.worker:
		tell = !p.warned && at.Sub(p.begun) >= warnAfter
	case p.worker || at.Sub(p.lastSeen) >= tie.LossTime:
		p.unreached, tell = true, !p.warned
	}
	p.warned = p.warned || tell
	return tell
}

// isUnreachable reports whether a call has failed for what lies between the two machines: not for want of something here, nor
// because a process that has accepted the call says nothing.
func isUnreachable(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	if !ok || op.Op != "dial" {
		return false
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return dns.IsNotFound
	}
	for _, own := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EADDRNOTAVAIL, syscall.EADDRINUSE} {
		if errors.Is(err, own) {
			return false
		}
	}
	return true
}

// callPeers has this node call its peers in the round that it has got, and no others any more.
func (l *loop) callPeers(doc *roundDoc) {
	wanted := make(map[string]bool)
	for _, other := range doc.Peers {
		wanted[other.Key] = other.Key != l.etcd.key
	}
	for id, p := range l.peers {
		if !wanted[p.key] {
			p.stop()
			delete(l.peers, id)
		}
	}
	for _, other := range doc.Peers {
		if wanted[other.Key] {
			l.callAgent(other, false)
		}
	}
}

// callAgent keeps a tie to another node's agent, or tries to. unreached says that it could not be reached just now. Where a round has
// more than rendezvous.PeersLimit members, an agent calls those that it could not reach, and that of rank 0.
func (l *loop) callAgent(other peerDoc, unreached bool) {
	if p := l.peers[other.Key]; p != nil {
		p.unreached = p.unreached || unreached
		return
	}
	l.callAt(other, address(other.Addr, other.Door), unreached)
}

func (l *loop) callAt(other peerDoc, addr string, unreached bool) {
	p, ctx := l.newPeer(other.Key, other, addr)
	if p == nil {
		return
	}
	p.unreached, p.warned = unreached, unreached
	l.others.Go(func() {
		pause(ctx, rand.N(spreadTime))
		heard := func(at time.Time, err error) { l.post(func() { l.onCall(p.key, p, at, err) }) }
		if l.end.Hold(ctx, p.key, p.addr, heard) { // of all ties to a process the last one that breaks tells
			l.post(func() { l.onEnded(p.key, p.addr) })
		}
	})
}

// callWorker calls addr, where a worker of another node could not be reached, again and again until somebody answers.
func (l *loop) callWorker(other peerDoc, addr string) {
	id := other.Key + " " + addr
	if l.peers[id] != nil {
		return
	}
	p, ctx := l.newPeer(id, other, addr)
	if p == nil {
		return
	}
	p.worker, p.unreached = true, true
	l.others.Go(func() {
		for ctx.Err() == nil {
			pause(ctx, redialPause/2+rand.N(redialPause))
			begun := time.Now()
			err := l.dial(ctx, addr)
			if ctx.Err() == nil {
				l.post(func() { l.onCall(id, p, begun, err) })
			}
		}
	})
}

// newPeer returns a peer and the context of its calls, or nil if there are too many peers.
func (l *loop) newPeer(id string, other peerDoc, addr string) (*peer, context.Context) {
	if len(l.peers) >= 2*reachLimit || l.end == nil {
		return nil, nil
	}
	ctx, stop := context.WithCancel(l.ctx)
	p := &peer{key: other.Key, host: other.Host, addr: addr, stop: stop, begun: time.Now()}
	l.peers[id] = p
	return p, ctx
}

// dial fails if nothing answers at addr. A refusal is an answer.
func (l *loop) dial(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	return dialAndClose(ctx, l.dialer(), addr)
}

// onCall takes note of a sign of p or of a failed call, see heard. A call that fails while etcd cannot be used says nothing: this
// node may be the one that is cut off.
func (l *loop) onCall(id string, p *peer, at time.Time, err error) {
	if l.peers[id] != p || err != nil && (!l.outage.IsZero() || at.Before(l.usable)) {
		return
	}
	was, first := p.unreached, p.lastSeen.IsZero()
	tell := p.heard(at, err)
	switch {
	case was && !p.unreached:
		l.config.Log.Info("reaches " + p.host + " again at " + p.addr)
	case first && err == nil:
		l.config.Log.Debug("reaches " + p.host + " at " + p.addr)
	case tell && p.unreached:
		l.config.Log.Warn("cannot reach "+p.host+" any more at "+p.addr, "error", err)
	case tell && !l.warned: // it may be meant to be so: one line is enough
		l.warned = true
		l.config.Log.Warn("cannot reach "+p.host+" at "+p.addr+
			": if workers here need those there, they wait in vain (see to firewalls, or to --local-addr)", "error", err)
	case tell:
		l.config.Log.Debug("cannot reach "+p.host+" at "+p.addr, "error", err)
	}
	if p.worker && err == nil {
		p.stop()
		delete(l.peers, id)
	}
}

// unreached is what etcd should know of the peers that this node cannot reach: one address of each, and reachLimit at most.
func (l *loop) unreached() (list []unreachedDoc) {
	for _, p := range l.peers {
		if p.unreached {
			list = append(list, unreachedDoc{p.key, p.addr})
		}
	}
	slices.SortFunc(list, func(a, b unreachedDoc) int { return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Addr, b.Addr)) })
	list = slices.CompactFunc(list, func(a, b unreachedDoc) bool { return a.Key == b.Key })
	return list[:min(len(list), reachLimit)]
}

// usableAgain is for when etcd can be used again. It forgets the peers that were found unreachable during the outage, as etcd was not
// told of them: they are called again.
func (l *loop) usableAgain() {
	l.usable = time.Now()
	for _, p := range l.peers {
		p.unreached = p.unreached && slices.ContainsFunc(l.claimed, func(u unreachedDoc) bool { return u.Key == p.key })
	}
}
