package node

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/gorun/gorun/rendezvous"
)

// evictTimeout is how long an eviction may take. After that, what was found out about the agent may be out of date.
const evictTimeout = 2 * time.Second

// monitorLeader keeps a liveness connection to the leader.
func (b *member) monitorLeader() {
	v := b.conn.view
	if s := v.config.Secret; s != "" && s != b.secret {
		b.secret = s
		b.emit(useSecret{s})
	}
	rev := int64(0)
	if v.leader != nil && v.leader.Key != b.key && b.enrolledLease != 0 {
		rev = v.leaderRev
	}
	switch rev {
	case b.monitored:
	case 0:
		b.emit(stop{"leader"})
	default:
		b.emit(start{"leader", monitorLeader{v.leader.Key, v.leader.Agent}})
	}
	b.monitored = rev
}

func (e agentEnded) apply(m *stateMachine) { m.member.ended[e.key] = e.addr }

// apply: a decision may wait for the connection of a member.
func (e agentConnected) apply(m *stateMachine) {
	l := &m.leader
	if l.connected[e.key] += e.more; l.connected[e.key] == 0 {
		delete(l.connected, e.key)
	}
	if l.leading && l.stage.For == rendezvous.Cause {
		l.decideAt = m.now
	}
}

// evict deletes from the store what is known of agents that have ended. Any node may evict the leader; only the leader
// evicts others. A member that is not the leader keeps in mind which of its peers have ended, for when it is. The store may be slow, or may have lost a member together with the agent. So evict tries until it has
// succeeded or the leases have run out, and makes sure each time that the agents have ended. It does nothing while the
// store cannot be used: then this node may be the one that is cut off.
func (m *stateMachine) evict() {
	due := make(map[string]string)
	for key, addr := range m.member.ended {
		switch {
		case m.evicts(key):
			due[key] = addr
		case m.leader.leads() || m.member.peers[key] == nil:
			delete(m.member.ended, key)
		}
	}
	if len(due) > 0 && !m.conn.isAway() {
		m.request(evicting, &evictAgents{ended: due})
	}
}

// evictAgents has the store forget agents that have ended.
type evictAgents struct {
	ended    map[string]string
	resolved []string // keys that need no other try
}

func (r *evictAgents) do(ctx context.Context, x *executor) error {
	for _, key := range slices.Sorted(maps.Keys(r.ended)) {
		if x.hasEnded(ctx, key, r.ended[key]) {
			limited, cancel := x.within(ctx, evictTimeout)
			err := x.evict(limited, key)
			cancel()
			if err != nil {
				return err
			}
		}
		r.resolved = append(r.resolved, key)
	}
	return nil
}

func (r *evictAgents) done(m *stateMachine, err error) {
	ended := m.member.ended
	m.log(slog.LevelDebug, "agents have ended", "keys", slices.Sorted(maps.Keys(ended)), "to_be_tried_again", len(r.ended)-len(r.resolved), "error", err)
	for _, key := range r.resolved { // and not one that has ended meanwhile
		delete(ended, key)
	}
}

// evicts reports whether this node is the one to evict an agent, and the store still has its key as far as is known.
func (m *stateMachine) evicts(key string) bool {
	v := m.conn.view
	return v.leader != nil && v.leader.Key == key || m.leader.leads() && (!v.whole || v.nodes[key].rev > 0)
}
