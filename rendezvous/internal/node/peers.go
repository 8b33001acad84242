package node

import (
	"cmp"
	"errors"
	"log/slog"
	"maps"
	"net"
	"slices"
	"syscall"
	"time"

	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/internal/liveness"
)

const (
	// reachLimit bounds how many nodes an agent says that it cannot reach, and how many are believed.
	reachLimit = 64
	// namedLimit is how many of the peers that a failed worker names its agent calls.
	namedLimit = 16

	spreadTime     = 500 * time.Millisecond // over which the members of a round spread their first calls to each other
	dialTimeout    = 3 * time.Second        // of a call to where a worker could not reach another one
	redialInterval = 5 * time.Second        // between two of them, on average
	warnAfter      = 5 * time.Second        // without a sign of a peer, from the first call on
)

// A peer is another node that this one has to reach, or a worker there. The leader is told of one that could be reached and cannot
// any more, and of a worker that neither a worker here nor this agent can reach. Of one that could never be reached only people are
// warned: there are programs whose workers talk to rank 0 alone, and firewalls to go with them.
type peer struct {
	key, host, addr string

	begun     time.Time // the first call
	lastSeen  time.Time // zero: never
	worker    bool      // addr is a worker's
	unreached bool      // the leader is to know that this node cannot reach it
	warned    bool      // people have been warned of it
}

// observe takes note of a sign of the peer at that time, or of a call that began then and has failed with err. warn reports whether
// people are to be warned of it.
func (p *peer) observe(at time.Time, err error) (warn bool) {
	switch {
	case err == nil:
		if at.After(p.lastSeen) {
			p.lastSeen = at
		}
		p.unreached, p.warned = false, false
	case !isUnreachable(err):
	case p.lastSeen.IsZero() && !p.worker:
		warn = !p.warned && at.Sub(p.begun) >= warnAfter
	case p.worker || at.Sub(p.lastSeen) >= liveness.LossTime:
		p.unreached, warn = true, !p.warned
	}
	p.warned = p.warned || warn
	return warn
}

// isUnreachable reports whether a call has failed because of the network or the other machine. It is false if this machine lacks
// something, such as descriptors, and if a process accepted the call and did not answer.
func isUnreachable(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	if !ok || op.Op != "dial" {
		return false
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return dns.IsNotFound
	}
	lacks := []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EADDRNOTAVAIL, syscall.EADDRINUSE}
	return !slices.ContainsFunc(lacks, func(own error) bool { return errors.Is(err, own) })
}

// monitorPeers has this node monitor its peers in the round that it has got, and no others any more.
func (b *member) monitorPeers(doc *roundDoc) {
	wanted := make(map[string]bool)
	for _, other := range doc.Peers {
		wanted[other.Key] = other.Key != b.key
	}
	for _, id := range slices.Sorted(maps.Keys(b.peers)) {
		if !wanted[b.peers[id].key] {
			b.stop(id)
		}
	}
	for _, other := range doc.Peers {
		if wanted[other.Key] {
			b.monitor(other, false)
		}
	}
}

// monitor keeps a liveness connection to another node's agent, or tries to. unreached says that it could not be reached just now. Where
// a round has more than rendezvous.PeersLimit members, an agent monitors those that it could not reach, and that of rank 0.
func (b *member) monitor(other peerDoc, unreached bool) {
	if p := b.peers[other.Key]; p != nil {
		p.unreached = p.unreached || unreached
		return
	}
	if p := b.newPeer(other.Key, other, address(other.Addr, other.AgentPort)); p != nil {
		p.unreached, p.warned = unreached, unreached
		b.emit(start{"peer " + p.key, monitorPeer{p.key, p.addr}})
	}
}

// callWorker repeatedly calls addr, at which a worker of another node could not be reached, until somebody answers.
func (b *member) callWorker(other peerDoc, addr string) {
	id := other.Key + " " + addr
	if p := b.newPeer(id, other, addr); p != nil {
		p.worker, p.unreached = true, true
		b.emit(start{"peer " + id, callWorker{id, addr}})
	}
}

// newPeer returns a peer, or nil if there is one of that id, or if there are too many.
func (b *member) newPeer(id string, other peerDoc, addr string) *peer {
	if b.peers[id] != nil || len(b.peers) >= 2*reachLimit {
		return nil
	}
	b.peers[id] = &peer{key: other.Key, host: other.Host, addr: addr, begun: b.now}
	return b.peers[id]
}

func (b *member) stop(id string) {
	delete(b.peers, id)
	b.emit(stop{"peer " + id})
}

// apply takes note of a sign of a peer or of a failed call, see observe. A call that fails while the store cannot be
// used says nothing: this node may be the one that is cut off.
func (e peerObserved) apply(m *stateMachine) {
	b := &m.member
	p := b.peers[e.id]
	if p == nil || e.err != nil && (m.conn.isAway() || e.at.Before(m.conn.usable)) {
		return
	}
	was, first := p.unreached, p.lastSeen.IsZero()
	warn := p.observe(e.at, e.err)
	switch {
	case was && !p.unreached:
		m.log(slog.LevelInfo, "reaches "+p.host+" again at "+p.addr)
	case first && e.err == nil:
		m.log(slog.LevelDebug, "reaches "+p.host+" at "+p.addr)
	case warn && p.unreached:
		m.log(slog.LevelWarn, "cannot reach "+p.host+" any more at "+p.addr, "error", e.err)
	case warn && !b.warned: // it may be meant to be so: one line is enough
		b.warned = true
		m.log(slog.LevelWarn, "cannot reach "+p.host+" at "+p.addr+
			": workers here that need workers there will wait in vain (check firewalls, or --local-addr)", "error", e.err)
	case warn:
		m.log(slog.LevelDebug, "cannot reach "+p.host+" at "+p.addr, "error", e.err)
	}
	if p.worker && e.err == nil {
		b.stop(e.id)
	}
}

// unreached is what the store should know of the peers that this node cannot reach: one address of each, and reachLimit
// at most.
func (b *member) unreached() (list []unreachedDoc) {
	for _, p := range b.peers {
		if p.unreached {
			list = append(list, unreachedDoc{p.key, p.addr})
		}
	}
	slices.SortFunc(list, func(a, b unreachedDoc) int { return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Addr, b.Addr)) })
	list = slices.CompactFunc(list, func(a, b unreachedDoc) bool { return a.Key == b.Key })
	return list[:min(len(list), reachLimit)]
}

// onUsable is for when the store can be used again. It forgets the peers that were found unreachable during the outage,
// as the store was not told of them; they are called again.
func (b *member) onUsable() {
	for _, p := range b.peers {
		p.unreached = p.unreached && slices.ContainsFunc(b.claimed, func(u unreachedDoc) bool { return u.Key == p.key })
	}
}

// confirm calls the peers that a worker of this node could not reach in a round. Until that is done this node does not enrol for
// the next round, whose members depend on it.
func (b *member) confirm(round int, named []rendezvous.Peer) {
	if !b.conn.isAway() {
		b.confirming++
		b.emit(start{"", confirmPeers{round, named[:min(len(named), namedLimit)]}})
	}
}

func (e peersConfirmed) apply(m *stateMachine) {
	m.member.confirming--
	if m.conn.isAway() {
		return
	}
	for _, u := range e.unreached {
		m.member.callWorker(u.node, u.addr)
	}
}
