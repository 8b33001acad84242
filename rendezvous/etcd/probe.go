package etcd

import (
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/gorun/gorun/rendezvous"
)

// A worker may have failed because two nodes have lost each other: workers may give up on each other long before the agents' connections
// show that. So when a worker has failed, each member of the round probes the others: it finds out whether it still reaches them.
// If a restart is left, the members do so between two rounds, while their workers end, and join the next round when they know.
// Otherwise the leader asks them to, and waits for their answers before it ends the job.
//
// A probe only connects. The other machine's kernel answers, however slow the agent there is.

const (
	probeCalls                             = 6 // without an answer, one after the other, show that a node cannot be reached
	firstProbeTimeout, longestProbeTimeout = 200 * time.Millisecond, 800 * time.Millisecond
)

// probeDue returns the round whose other members this node still has to probe; 0: none.
func (b *member) probeDue() int {
	v := b.conn.view
	if _, member := v.assignment(b.key); !member || v.state != nil || v.round.Size > rendezvous.PeersLimit || v.round.ID == b.probed {
		return 0
	}
	failed := v.current.Over != nil && v.current.Over.Restarts > v.round.Restarts
	if failed || v.probe.Round == v.round.ID {
		return v.round.ID
	}
	return 0
}

// probe calls the peers that have been reached before. It waits while etcd cannot be used, as this node may be cut off itself.
func (b *member) probe() {
	round := b.probeDue()
	if round == 0 || b.probing || b.conn.isAway() {
		return
	}
	var peers []probedPeer
	for _, id := range slices.Sorted(maps.Keys(b.peers)) {
		if p := b.peers[id]; !p.worker && !p.unreached && !p.lastSeen.IsZero() {
			peers = append(peers, probedPeer{id: id, addr: p.addr})
		}
	}
	if len(peers) == 0 {
		b.probed = round
		return
	}
	b.probing = true
	b.emit(start{"", probePeers{b.conn.job, round, b.now, peers}})
}

// apply takes the results of a probe.
func (e peersProbed) apply(m *stateMachine) {
	b := &m.member
	b.probing = false
	if m.conn.job != e.job || m.conn.isAway() || e.begun.Before(m.conn.usable) { // another probe begins, if one is still due
		return
	}
	b.probed = e.round
	for _, called := range e.peers {
		p := b.peers[called.id]
		if p == nil || p.lastSeen.IsZero() || p.lastSeen.After(e.begun) || !isUnreachable(called.err) { // or it is another one by now
			continue
		}
		m.log(slog.LevelWarn, "cannot reach "+p.host+" any more at "+p.addr, "error", called.err)
		b.stop(called.id) // the old connection shows nothing for half a minute; a new one shows when the peer is reached again
		b.monitorAt(peerDoc{Key: p.key, Host: p.host}, p.addr, true)
	}
}
