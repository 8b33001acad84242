package etcd

import (
	"context"
	"net"
	"strconv"
	"time"

	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/tie"
)

// buryLimit is how long etcd may take to forget an agent that has ended. If it takes longer, this node may be the one that
// is cut off.
const buryLimit = time.Second

// listen lets the other agents call this one.
func (l *loop) listen(host string) (err error) {
	if l.end != nil {
		return nil
	}
	l.end, err = tie.Listen(tie.Config{
		Key: l.etcd.key, Host: host, Secret: []byte(l.secret),
		Ended: func(key string) { l.post(func() { l.onEnded(key) }) },
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
		if l.end.Hold(ctx, leader.Key, leader.Door) {
			l.post(func() { l.onEnded(leader.Key) })
		}
	})
}

// door is where this node's agent answers the others.
func (l *loop) door() string { return address(rendezvous.Node(l.self.Node).Reach(), l.end.Port()) }

func address(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

// onEnded: the agent with that key is no more. All may act on the leader's end, and the leader on that of others, if etcd can
// be used: otherwise this node may be the one that is cut off.
func (l *loop) onEnded(key string) {
	leader := l.view.leader
	if l.outage.IsZero() && (l.leads() || leader != nil && leader.Key == key) {
		l.ended = append(l.ended, key)
	}
}

// bury has etcd forget agents that have ended. That is tried once: their leases run out.
func (l *loop) bury() {
	if len(l.ended) == 0 || l.requests[burying] {
		return
	}
	keys := l.ended
	l.ended = nil
	l.start(burying, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, buryLimit)
		defer cancel()
		for _, key := range keys {
			if err := l.etcd.bury(ctx, key); err != nil {
				return err
			}
		}
		return nil
	}, func(err error) {
		l.config.Log.Debug("agents have ended", "keys", keys, "error", err)
	})
}
