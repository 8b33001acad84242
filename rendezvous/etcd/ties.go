package etcd

import (
	"context"
	"maps"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/tie"
)

// evictLimit is how long etcd may take to forget an agent that has ended. What was found out of it may not be so any more then.
const evictLimit = 2 * time.Second

// listen lets the other agents call this one.
func (l *loop) listen(host string) (err error) {
	if l.end != nil {
		return nil
	}
	l.end, err = tie.Listen(tie.Config{
		Key: l.etcd.key, Host: host, Secret: []byte(l.secret),
		Ended: func(key, addr string) { l.post(func() { l.onEnded(key, addr) }) },
		Tied:  func() { l.post(l.onTied) },
		Dial:  l.config.dial,
		Log:   l.config.Log.With("for", "ties").Info,
	})
	return err
}

// hold ties this node to the leader.
func (l *loop) hold() {
	if s := l.view.config.Secret; s != "" && s != l.secret {
		l.secret = s
		if l.end != nil {
			l.end.Use([]byte(s))
		}
	}
	leader, to := l.view.leader, int64(0)
	if leader != nil && leader.Key != l.etcd.key && l.under != 0 {
		to = l.view.leaderRev
	}
	if to == l.tiedTo {
		return
	}
	if l.tiedTo != 0 {
		l.untie()
	}
	l.tiedTo = to
	if to == 0 {
		return
	}
	var ctx context.Context
	ctx, l.untie = context.WithCancel(l.ctx)
	l.others.Go(func() {
		if l.end.Hold(ctx, leader.Key, leader.Door, nil) {
			l.post(func() { l.onEnded(leader.Key, leader.Door) })
		}
	})
}

// agentAddr is where this node's agent answers the others.
func (l *loop) agentAddr() string { return address(rendezvous.Node(l.self.Node).Reach(), l.end.Port()) }

func address(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

// onEnded: the agent with that key, which answered at addr, is no more.
func (l *loop) onEnded(key, addr string) {
	if l.ended == nil {
		l.ended = make(map[string]string)
	}
	l.ended[key] = addr
}

// onTied: a decision may wait for the tie of a member.
func (l *loop) onTied() {
	if l.stage.For == rendezvous.Cause {
		l.decided = nil
	}
}

// evict has etcd forget agents that have ended. All may act on the leader's end, and the leader on that of others. etcd may be slow,
// or may have lost a member with the agent, so this is tried again until it is done, or their leases have run out. Each time they
// are looked at anew; as long as etcd cannot be used, this node may be the one that is cut off.
func (l *loop) evict() {
	for key := range l.ended {
		if !l.remembers(key) {
			delete(l.ended, key)
		}
	}
	if len(l.ended) == 0 || !l.outage.IsZero() || l.requests[evicting] {
		return
	}
	all := maps.Clone(l.ended)
	var done []string
	l.start(evicting, func(ctx context.Context) error {
		for key, addr := range all {
			if l.end.HasEnded(ctx, key, addr) {
				limited, cancel := context.WithTimeout(ctx, evictLimit)
				err := l.etcd.evict(limited, key)
				cancel()
				if err != nil {
					return err
				}
			}
			done = append(done, key)
		}
		return nil
	}, func(err error) {
		l.config.Log.Debug("agents have ended", "keys", slices.Collect(maps.Keys(l.ended)), "to_be_tried_again", len(all)-len(done), "error", err)
		for _, key := range done { // and not one that has ended meanwhile
			delete(l.ended, key)
		}
	})
}

// remembers reports whether it is this node's to have etcd forget an agent, which it has not done, as far as is known.
func (l *loop) remembers(key string) bool {
	leader := l.view.leader
	return leader != nil && leader.Key == key || l.leads() && (!l.view.whole || l.view.nodeRev[key] > 0)
}

// withTies says of each node whether the leader, which this node is, has a tie from it.
func (l *loop) withTies(nodes []rendezvous.Candidate) []rendezvous.Candidate {
	nodes = slices.Clone(nodes)
	for i, n := range nodes {
		nodes[i].LeaseOnly = n.Key != l.etcd.key && !l.end.Tied(n.Key)
	}
	return nodes
}
