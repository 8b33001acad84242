package etcd

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"syscall"
	"time"

	"github.com/gorun/gorun/rendezvous"
)

// Calls of other agents and of workers: what a driver does in goroutines of its own.

// callRank0 calls rank 0's agent until it answers, or ctx ends. If it is reached and does not answer, or cannot be called for a fault of
// this node, that goes on for the failure timeout. It posts each call without an answer.
func (d *driver) callRank0(ctx context.Context, c callRank0) {
	ctx, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	agent := address(c.rank0.Addr, c.rank0.AgentPort)
	var last error
	for begun := time.Now(); ; {
		err := d.detector.Ping(ctx, c.rank0.Key, agent)
		if err == nil || filtered(err) && d.masterAnswers(ctx, address(c.rank0.Addr, c.rank0.Port)) {
			d.post(rank0Reached{c})
			return
		}
		if last == nil || ctx.Err() == nil {
			last = &UnreachableError{Self: c.self, Master: c.rank0.Host, Agent: agent, Err: err}
		}
		lasted, unreachable := time.Since(begun), isUnreachable(err)
		if pause(ctx, callInterval); ctx.Err() != nil || !unreachable && lasted >= d.config.failureTimeout() {
			d.post(rank0Failed{c, last})
			return
		}
		d.post(rank0Silent{c, last, unreachable, lasted})
	}
}

// filtered reports whether a call may have failed because of a firewall: nobody has answered.
func filtered(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout() || errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.EACCES)
}

// masterAnswers reports whether addr, which is the master's, can be reached although its agent cannot: a firewall may let through
// what workers need and no more. Nobody listens there yet, so a refusal is an answer.
func (d *driver) masterAnswers(ctx context.Context, addr string) bool {
	ctx, cancel := context.WithTimeout(ctx, masterTimeout)
	defer cancel()
	return dialAndClose(ctx, d.config.dialer(), addr) == nil
}

// monitorPeer keeps a liveness connection to a peer. Of all that there are to a process the last one that breaks shows its end.
func (d *driver) monitorPeer(ctx context.Context, p monitorPeer) {
	pause(ctx, rand.N(spreadTime))
	observe := func(at time.Time, err error) { d.post(peerObserved{p.id, p.serial, at, err}) }
	if d.detector.Monitor(ctx, p.key, p.addr, observe) {
		d.post(agentEnded{p.key, p.addr})
	}
}

// callWorker calls an address again and again until it is stopped.
func (d *driver) callWorker(ctx context.Context, p callWorker) {
	for ctx.Err() == nil {
		pause(ctx, redialInterval/2+rand.N(redialInterval))
		begun := time.Now()
		err := d.dial(ctx, p.addr)
		if ctx.Err() == nil {
			d.post(peerObserved{p.id, p.serial, begun, err})
		}
	}
}

// confirmPeers calls the workers that a worker of this node could not reach in a round.
func (d *driver) confirmPeers(ctx context.Context, c confirmPeers) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	owners, err := d.executor.owners(ctx, c.round, c.named)
	if err != nil {
		d.config.Log.Debug("who has the ranks that a worker could not reach", "error", err)
	}
	answers := make(chan bool, len(c.named))
	var called []rendezvous.Peer
	unreached := make([]bool, len(c.named))
	for _, n := range c.named {
		if owner, ok := owners[n.Rank]; ok && owner.Key != d.executor.key {
			i := len(called)
			called = append(called, n)
			go func() {
				unreached[i] = isUnreachable(d.dial(ctx, n.Addr))
				answers <- true
			}()
		}
	}
	for range called {
		<-answers
	}
	var all []unreachedWorker
	for i, n := range called {
		if unreached[i] {
			all = append(all, unreachedWorker{owners[n.Rank], n.Addr})
		}
	}
	d.post(peersConfirmed{all})
}

// probePeers probes all at once.
func (d *driver) probePeers(ctx context.Context, p probePeers) {
	type result struct {
		id  string
		err error
	}
	results := make(chan result, len(p.peers))
	for _, peer := range p.peers {
		go func() { results <- result{peer.id, probe(ctx, d.config.dialer(), peer.addr)} }()
	}
	errs := make(map[string]error)
	for range p.peers {
		r := <-results
		errs[r.id] = r.err
	}
	d.post(peersProbed{p, errs})
}

// probe calls addr again and again, until somebody answers or probeCalls have had no answer: then isUnreachable is true of the
// error. Several calls are needed, since a lost packet or a pause of this process can cost one of them its answer.
func probe(ctx context.Context, dial dialFunc, addr string) (err error) {
	timeout := firstProbeTimeout
	for range probeCalls {
		limited, cancel := context.WithTimeout(ctx, timeout)
		err = dialAndClose(limited, dial, addr)
		if !isUnreachable(err) {
			cancel()
			return err
		}
		<-limited.Done() // also after an error that came at once, such as a missing route
		cancel()
		timeout = min(2*timeout, longestProbeTimeout)
	}
	return err
}

// dial fails if nothing answers at addr. A refusal is an answer.
func (d *driver) dial(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	return dialAndClose(ctx, d.config.dialer(), addr)
}

type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// dialer returns how this node calls others.
func (c *Config) dialer() dialFunc {
	if c.dial != nil {
		return c.dial
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
