package etcd

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"

	"github.com/gorun/gorun/rendezvous"
)

// A worker may have failed because two nodes have lost each other: workers may give up on each other long before the agents' ties
// show that. So when a worker has failed, each member of the round probes the others: it finds out whether it still reaches them.
// If a restart is left, the members do so between two rounds, while their workers end, and join the next round when they know.
// Otherwise the leader asks them to, and waits for their answers before it ends the job.
//
// A probe only connects. The other machine's kernel answers, however slow the agent there is.

const (
	probeCalls                            = 6 // without an answer, one after the other, show that a node cannot be reached
	firstProbePatience, mostProbePatience = 200 * time.Millisecond, 800 * time.Millisecond
)

// probeDue returns the round whose other members this node still has to probe; 0: none.
func (l *loop) probeDue() int {
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

// probeAnswer returns what self.Probed should be. It changes only for a probe that the leader has asked for.
func (l *loop) probeAnswer() int {
	if l.probed == l.view.probe {
		return l.probed
	}
	return l.toldProbed
}

// probe calls the peers that have been reached before. It waits while etcd cannot be used, as this node may be cut off itself.
func (l *loop) probe() {
	round := l.probeDue()
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

// onProbed takes the results of a probe for a round of job. The calls began at begun.
func (l *loop) onProbed(job string, round int, begun time.Time, called map[*peer]error) {
	l.probing = false
	if l.job != job || !l.outage.IsZero() || begun.Before(l.usable) { // step begins another probe, if one is still due
		return
	}
	l.probed = round
	for p, err := range called {
		if l.peers[p.key] != p || !isUnreachable(err) || p.lastSeen.After(begun) {
			continue
		}
		l.config.Log.Warn("cannot reach "+p.host+" any more at "+p.addr, "error", err)
		p.stop() // the old tie shows nothing for half a minute; a new one shows when the peer is reached again
		delete(l.peers, p.key)
		l.callAt(peerDoc{Key: p.key, Host: p.host}, p.addr, true)
	}
}

// probe calls addr again and again, until somebody answers or probeCalls have had no answer: then isUnreachable is true of the
// error. Several calls are needed, since a lost packet or a pause of this process can cost one of them its answer.
func probe(ctx context.Context, dial dialFunc, addr string) (err error) {
	patience := firstProbePatience
	for range probeCalls {
		limited, cancel := context.WithTimeout(ctx, patience)
		err = dialAndClose(limited, dial, addr)
		if !isUnreachable(err) {
			cancel()
			return err
		}
		<-limited.Done() // also after an error that came at once, such as a missing route
		cancel()
		patience = min(2*patience, mostProbePatience)
	}
	return err
}

type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// dialer returns how this node calls others.
func (l *loop) dialer() dialFunc {
	if l.config.dial != nil {
		return l.config.dial
	}
	return new(net.Dialer).DialContext
}

// dialAndClose fails if nobody answers at addr. A refusal is an answer.
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
