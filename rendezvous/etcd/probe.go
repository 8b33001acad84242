package etcd

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"

	"github.com/gorun/gorun/rendezvous"
)

// When a worker has failed, every member of the round finds out whether it still reaches the others: a worker may give up on
// another long before silence tells the agents. With a restart left they do so between two rounds, while their workers end, and join
// the next one when they know. Otherwise the leader asks for it, and waits for what they say.
//
// To connect is enough: the other machine's kernel answers, however slow the agent there is.

const (
	probeCalls                            = 6 // in a row that nobody has answered show that a node cannot be reached
	firstProbePatience, mostProbePatience = 200 * time.Millisecond, 800 * time.Millisecond
)

// mustProbe is the round for which this node has still to find out whether it reaches the other members; 0: none.
func (l *loop) mustProbe() int {
	v := l.view
	if _, member := v.seat(l.etcd.key); !member || v.state != nil || v.round.Size > rendezvous.PeersLimit || v.round.ID == l.probed {
		return 0
	}
	failed := v.current.Over != nil && v.current.Over.Restarts > v.round.Restarts
	if failed || v.probe == v.round.ID {
		return v.round.ID
	}
	return 0
}

// probedAsAsked is what self.Probed is to be. What the leader has not asked for it need not be told.
func (l *loop) probedAsAsked() int {
	if l.probed == l.view.probe {
		return l.probed
	}
	return l.toldProbed
}

// probe calls those of the peers that have been reached before. In an outage of etcd it waits, as this node may be cut off itself.
func (l *loop) probe() {
	round := l.mustProbe()
	if round == 0 || l.probing || !l.outage.IsZero() {
		return
	}
	called := make(map[*peer]error)
	for _, p := range l.peers {
		if !p.worker && !p.unreached && !p.lastSeen.IsZero() {
			called[p] = nil
		}
	}
	if len(called) == 0 {
		l.probed = round
		return
	}
	l.probing = true
	job, begun := l.job, time.Now()
	l.others.Go(func() {
		type answer struct {
			of  *peer
			err error
		}
		answers := make(chan answer, len(called))
		for p := range called {
			l.others.Go(func() { answers <- answer{p, probe(l.ctx, l.dialer(), p.addr)} })
		}
		for range len(called) {
			a := <-answers
			called[a.of] = a.err
		}
		l.post(func() { l.onProbed(job, round, begun, called) })
	})
}

// onProbed takes what has come of the calls, which began then, for a round of job.
func (l *loop) onProbed(job string, round int, begun time.Time, called map[*peer]error) {
	l.probing = false
	if l.job != job || !l.outage.IsZero() || begun.Before(l.usable) { // they are made again, if they are to be
		return
	}
	l.probed = round
	for p, err := range called {
		if l.peers[p.key] != p || !isUnreachable(err) || p.lastSeen.After(begun) {
			continue
		}
		l.config.Log.Warn("cannot reach "+p.host+" any more at "+p.addr, "error", err)
		p.stop() // the tie would look the same for half a minute; a new one shows that the peer is reached again
		delete(l.peers, p.key)
		l.callAt(peerDoc{Key: p.key, Host: p.host}, p.addr, true)
	}
}

// probe fails as isUnreachable says if nobody answers at addr, although that is called again and again. So neither a packet that is
// lost, nor a pause of this process, is held against the other one.
func probe(ctx context.Context, dial dialFunc, addr string) (err error) {
	patience := firstProbePatience
	for range probeCalls {
		limited, cancel := context.WithTimeout(ctx, patience)
		err = dialAndClose(limited, dial, addr)
		if !isUnreachable(err) {
			cancel()
			return err
		}
		<-limited.Done() // an error may come at once
		cancel()
		patience = min(2*patience, mostProbePatience)
	}
	return err
}

type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// dialer is how this node calls others.
func (l *loop) dialer() dialFunc {
	if l.config.dial != nil {
		return l.config.dial
	}
	return new(net.Dialer).DialContext
}

// dialAndClose fails if nothing answers at addr. A refusal is an answer.
func dialAndClose(ctx context.Context, dial dialFunc, addr string) error {
	conn, err := dial(ctx, "tcp", addr)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil
	}
	if err == nil {
		_ = conn.Close() // nothing was to be said
	}
	return err
}
