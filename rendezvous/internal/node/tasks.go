package node

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/gorun/gorun/env/network"
	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/internal/store"
)

// A task goes on beside the loop, until it has ended or is stopped. It posts what it finds.
type task interface {
	run(ctx context.Context, d *driver, post func(event))
}

// watchJob watches job/ anew. If the store has gone back, a watch that waits for a later revision would wait for ever.
type watchJob struct{}

func (watchJob) run(ctx context.Context, d *driver, post func(event)) {
	job := store.Below(d.executor.keys.job())
	d.config.Store.Watch(ctx, job, func(events []store.Event) { post(jobChanged{events}) })
}

// watchNodes watches what only a leader reads.
type watchNodes struct{}

func (watchNodes) run(ctx context.Context, d *driver, post func(event)) {
	d.config.Store.Watch(ctx, d.executor.keys.leaders(), func([]store.Event) { post(nodesChanged{}) })
}

// monitorLeader keeps a liveness connection to the leader.
type monitorLeader struct{ key, addr string }

func (t monitorLeader) run(ctx context.Context, d *driver, post func(event)) {
	if d.detector.Monitor(ctx, t.key, t.addr, nil) {
		post(agentEnded(t))
	}
}

// monitorPeer keeps a liveness connection to another agent. Of all that there are to a process the last one that breaks shows its end.
type monitorPeer struct{ key, addr string }

func (t monitorPeer) run(ctx context.Context, d *driver, post func(event)) {
	network.Pause(ctx, rand.N(spreadTime))
	observe := func(at time.Time, err error) { post(peerObserved{t.key, at, err}) }
	if d.detector.Monitor(ctx, t.key, t.addr, observe) {
		post(agentEnded(t))
	}
}

// callWorker repeatedly calls an address at which a worker could not be reached, until it is stopped.
type callWorker struct{ id, addr string }

func (t callWorker) run(ctx context.Context, d *driver, post func(event)) {
	for ctx.Err() == nil {
		network.Pause(ctx, redialInterval/2+rand.N(redialInterval))
		begun := time.Now()
		post(peerObserved{t.id, begun, d.config.call(ctx, t.addr, dialTimeout)})
	}
}

// callRank0 calls the agent of rank 0 until it answers, for limit at most. If it is reached and does not answer, or cannot be called for
// a fault of this node, that goes on for the failure timeout.
type callRank0 struct {
	join, round int
	self        rendezvous.Node
	rank0       rank0Doc
	limit       time.Duration
}

func (t callRank0) run(ctx context.Context, d *driver, post func(event)) {
	ctx, cancel := context.WithTimeout(ctx, t.limit)
	defer cancel()
	agent := address(t.rank0.Addr, t.rank0.AgentPort)
	e := rank0Called{callRank0: t}
	for begun := time.Now(); !e.last; post(e) {
		err := d.detector.Ping(ctx, t.rank0.Key, agent)
		if err == nil || filtered(err) && d.config.masterAnswers(ctx, address(t.rank0.Addr, t.rank0.Port)) {
			e.err, e.last = nil, true
			continue
		}
		if e.err == nil || ctx.Err() == nil {
			e.err = &UnreachableError{Self: t.self, Master: t.rank0.Host, Agent: agent, Err: err}
		}
		e.lasted, e.unreachable = time.Since(begun), isUnreachable(err)
		network.Pause(ctx, callInterval)
		e.last = ctx.Err() != nil || !e.unreachable && e.lasted >= d.config.failureTimeout()
	}
}

// filtered reports whether a call may have failed because of a firewall: nobody has answered.
func filtered(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout() || errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.EACCES)
}

// masterAnswers reports whether addr, which is the master's, can be reached although its agent cannot: a firewall may let through
// what workers need and no more. Nobody listens there yet, so a refusal is an answer.
func (c *Config) masterAnswers(ctx context.Context, addr string) bool {
	return c.call(ctx, addr, masterTimeout) == nil
}

// confirmPeers calls workers that a worker of this node could not reach in a round.
type confirmPeers struct {
	round int
	named []rendezvous.Peer
}

func (t confirmPeers) run(ctx context.Context, d *driver, post func(event)) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	owners, err := d.executor.owners(ctx, t.round, t.named)
	if err != nil {
		d.config.Logger.Debug("who has the ranks that a worker could not reach", "error", err)
	}
	unreached := make([]bool, len(t.named))
	var all sync.WaitGroup
	for i, n := range t.named {
		if owner, ok := owners[n.Rank]; ok && owner.Key != d.executor.key {
			all.Go(func() { unreached[i] = isUnreachable(d.config.call(ctx, n.Addr, dialTimeout)) })
		}
	}
	all.Wait()
	var e peersConfirmed
	for i, n := range t.named {
		if unreached[i] {
			e.unreached = append(e.unreached, unreachedWorker{owners[n.Rank], n.Addr})
		}
	}
	post(e)
}

// owners are the nodes that have the ranks named in a round.
func (w *writer) owners(ctx context.Context, round int, named []rendezvous.Peer) (map[int]peerDoc, error) {
	answer, err := w.store.Read(ctx, below(w.keys.roundOf(round)))
	if err != nil {
		return nil, err
	}
	owners, firsts := make(map[int]peerDoc), make(map[int]int)
	for _, kv := range answer.Found[0].KVs {
		doc, err := decode[roundDoc](kv)
		if err != nil {
			return nil, err
		}
		for key, s := range doc.Assignments {
			first := s.Place.FirstRank
			for _, n := range named { // the last node whose ranks do not begin after it
				if before, found := firsts[n.Rank]; first <= n.Rank && (!found || before < first) {
					owners[n.Rank], firsts[n.Rank] = peerDoc{Key: key, Host: s.Host}, first
				}
			}
		}
	}
	return owners, nil
}

// call fails if nobody answers at an address. A refusal is an answer.
func (c *Config) call(ctx context.Context, at string, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	dial := c.dial
	if dial == nil {
		dial = network.Dial
	}
	conn, err := dial(ctx, "tcp", at)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil
	}
	if err == nil {
		_ = conn.Close() // nothing was to be said
	}
	return err
}
