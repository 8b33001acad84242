// Package node is one node's part in a job whose nodes meet in a store. Errors and logs call the store etcd, which its
// users know; only package etcdstore depends on that.
//
// Every node has one leased key, which says who it is and whether it waits for a round. One of the nodes, the leader,
// watches those keys, asks [rendezvous.Form] what follows, and writes that down in one transaction, which the store
// takes only if the node is still the leader and nothing has been decided since. All others watch a handful of keys
// that only the leader writes. So a round costs each node a few small messages, however many nodes there are; a leader
// that dies or is cut off is replaced by another, which reads all there is to know; and no decision is made twice.
//
// No clocks of two machines are compared. Of several reports the one with the lowest revision was first.
//
// An agent that ends is noticed at once, for it has a connection to the leader, which breaks: see package liveness. What is known
// of it is deleted then, as it would be when its lease has run out. The same goes for a leader, whoever notices.
//
// Silence is no evidence. While the store cannot be reached nothing is decided, and rounds go on; a node that the store
// has forgotten meanwhile comes back as the one that it was.
//
// The code is a pure state machine and what drives it:
//
//	event ──▶ state machine: leader ──▶ member ──▶ connection  statemachine.go, events.go, actions.go
//	             │        (each asks those to its right)       leader.go, member.go, connection.go, and files of one idea each
//	          actions
//	             ▼
//	          driver ── tasks, executor ── writer                driver.go; actions.go, tasks.go; write.go, enrol.go, view.go
//	             ▲                        │
//	             └──────── answers ───────┘
//
// What is to be asked of the store is one type: the request is data, do carries it out, and done takes what it has
// found.
//
// The state machine decides all there is to decide, and has neither clock nor goroutine nor I/O. So its life stories
// can be printed, see testdata, and thousands of jobs with faults be played in the time of one, see TestSimulation. All
// parts are in one package since they share the documents in the store; the types keep them apart.
package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/internal/store"
)

// Config is what New needs: Store, RunID, Min, Max and Reserve. New does not look at what is there to find, to use or to host an etcd
// (TempDir, and Access but for Endpoints, which errors name), nor at ExitCode.
//
// The zero values of Rules are 10 s for Lease, which is in whole seconds, 30 s for LastCall, 10 min for JoinTimeout,
// which also bounds how long the store may be away, and ScaleImmediate.
type Config struct {
	rendezvous.Config
	Store   store.Store // is closed by Close
	Started time.Time   // when this node was; zero: now
	Hosts   bool        // the store ends with this node

	Explain func(context.Context) error // says why the store cannot be used, in a few seconds; nil: it can. Optional

	// dial, in tests, is how agents call each other; nil: as package net does.
	dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// nodesLimit keeps what forms a round below what etcd takes at a time, which is 1.5 MiB.
const nodesLimit = 4000

// Rendezvous is one node's part in a job.
type Rendezvous struct {
	driver *driver

	mu   sync.Mutex
	left bool // Close has been called
}

// New does not wait for the store.
func New(c Config) (*Rendezvous, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	return &Rendezvous{driver: startDriver(&c)}, nil
}

// complete checks c, and fills in what is not given.
func (c *Config) complete() error {
	switch {
	case c.RunID == "":
		return errors.New("no run ID: want one that all nodes of the job share")
	case c.Min < 1 || c.Max < c.Min:
		return fmt.Errorf("%d to %d nodes: want at least 1, and a minimum that does not exceed the maximum", c.Min, c.Max)
	case c.Max > nodesLimit:
		return fmt.Errorf("%d nodes: want at most %d", c.Max, nodesLimit)
	case c.MaxRestarts < 0:
		return fmt.Errorf("%d restarts: want 0 or more", c.MaxRestarts)
	case c.Lease != 0 && c.Lease < time.Second:
		return fmt.Errorf("a node is noticed to be dead after %v: want at least 1s", c.Lease)
	case c.MasterPort < 0 || c.MasterPort > 65535:
		return fmt.Errorf("master port %d: want 1 to 65535, or 0 for any", c.MasterPort)
	case c.Reserve == nil:
		return errors.New("nothing to reserve ports with")
	}
	scales := []rendezvous.ScaleUp{rendezvous.ScaleImmediate, rendezvous.ScaleOnRestart, rendezvous.ScaleNever}
	if c.ScaleUp = cmp.Or(c.ScaleUp, scales[0]); !slices.Contains(scales, c.ScaleUp) {
		return fmt.Errorf("scale up %q: want %s, %s or %s", c.ScaleUp, scales[0], scales[1], scales[2])
	}
	for d, value := range map[*time.Duration]time.Duration{&c.Lease: 10 * time.Second, &c.LastCall: 30 * time.Second, &c.JoinTimeout: 10 * time.Minute} {
		if *d = cmp.Or(*d, value); *d < 0 {
			return fmt.Errorf("a timeout of %v: want 0 or more", *d)
		}
	}
	c.Prefix, c.Started = cmp.Or(c.Prefix, DefaultPrefix), cmp.Or(c.Started, time.Now())
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Waiting == nil {
		c.Waiting = func(string) {}
	}
	if c.Scaled == nil {
		c.Scaled = func(int) {}
	}
	if c.Explain == nil {
		c.Explain = func(context.Context) error { return nil }
	}
	return nil
}

// failureTimeout is how long a dead node may look alive.
func (c *Config) failureTimeout() time.Duration { return 2 * c.Lease }

// retention is for how long what is written of the job outlasts its leader. Another leader is elected long before,
// unless no node reaches the store, which may be so for the JoinTimeout.
func (c *Config) retention() time.Duration { return max(3*c.Lease+5*time.Second, c.JoinTimeout) }

// settings are what must be the same on every node, since any may come to decide.
func (c *Config) settings() rendezvous.Settings {
	s := rendezvous.Settings{
		"nnodes":            fmt.Sprintf("%d:%d", c.Min, c.Max),
		"max_restarts":      strconv.Itoa(c.MaxRestarts),
		"ttl":               c.Lease.String(),
		"last_call_timeout": c.LastCall.String(),
		"join_timeout":      c.JoinTimeout.String(),
		"scale_up":          string(c.ScaleUp),
		"master_port":       strconv.Itoa(c.MasterPort),
	}
	maps.Copy(s, c.Settings)
	return s
}

// Join waits for a round with self in it. The node's settings must be those of the job.
func (r *Rendezvous) Join(ctx context.Context, self rendezvous.Node) (*rendezvous.Round, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c := r.driver.config
	if err := c.check(self); err != nil {
		return nil, &rendezvous.MisuseError{Err: err}
	}
	j := &joinCall{self: self, answer: make(chan joined, 1)}
	if c.MasterPort == 0 {
		var err error
		if j.port, err = (rendezvous.Master{Addr: self.Reach()}).Reserve(c.Reserve); err != nil {
			return nil, err
		}
	}
	if !r.driver.turn(func() { r.driver.join(j) }) {
		r.driver.release(j.port)
		return nil, r.driver.machine.closed
	}
	select {
	case a := <-j.answer:
		return a.round, a.err
	case <-ctx.Done():
		r.driver.turn(func() { r.driver.step(joinCancelled{j.id, ctx.Err()}) })
		a := <-j.answer // which may be a round: it was faster
		return a.round, a.err
	}
}

// check says what is wrong with a node that is to join.
func (c *Config) check(n rendezvous.Node) error {
	switch {
	case n.Host == "" || n.Reach() == "":
		return errors.New("this node has no address at which others reach it")
	case n.NodeRank >= c.Max:
		return fmt.Errorf("node rank %d: want 0 to %d for %d nodes", n.NodeRank, c.Max-1, c.Max)
	}
	if err := n.Check(); err != nil {
		return err
	}
	if n.Nproc > rendezvous.WorldLimit/c.Max {
		return fmt.Errorf("%d workers: want at most %d, since there may be %d nodes", n.Nproc, rendezvous.WorldLimit/c.Max, c.Max)
	}
	return nil
}

// Report returns when the store has the report. Of those of one node on one round the first one counts.
func (r *Rendezvous) Report(ctx context.Context, round *rendezvous.Round, failure *rendezvous.Failure) error {
	if err := checkFailure(failure); err != nil {
		return err
	}
	return r.report(ctx, round, reportDoc{Failure: failure})
}

// Restart is a report as well: it takes the place of this node's own, since the round is over with it.
func (r *Rendezvous) Restart(ctx context.Context, round *rendezvous.Round, why string) error {
	if err := r.driver.lost(); err != nil {
		return err
	}
	return r.report(ctx, round, reportDoc{Restart: why})
}

// Leave is a report as well, if there are enough nodes without this one. In any case, the leader does not wait for this node any more.
func (r *Rendezvous) Leave(ctx context.Context, round *rendezvous.Round, why error) error {
	r.driver.post(leaving{})
	if least, _ := r.Limits(); round.Size <= least {
		return nil
	}
	left := rendezvous.OutcomeOf(why)
	return r.report(ctx, round, reportDoc{Left: &left})
}

func (r *Rendezvous) report(ctx context.Context, round *rendezvous.Round, doc reportDoc) error {
	answer := make(chan error, 1) // has room for the one there is
	if !r.driver.turn(func() { r.driver.report(round.ID, doc, answer) }) {
		return nil
	}
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// HostsAlone is false: the store is elsewhere.
func (r *Rendezvous) HostsAlone() bool { return false }

// Close leaves the job at once: what is in the store of this node is deleted, and the others find out that it is gone.
// If why is not nil and fewer nodes than Min are left, or there has been no round and the store ends with this node,
// the job is closed for that reason. If no node is left, the store
// forgets the job, so that its run ID can be used again; how a job was closed is kept for an hour. Without the store
// the node's lease runs out; Close tries for 5 s at most, and fails if it was not known that the store is away.
func (r *Rendezvous) Close(ctx context.Context, why error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left {
		return nil
	}
	r.left = true
	return errors.Join(r.driver.close(ctx, why), r.driver.config.Store.Close())
}
