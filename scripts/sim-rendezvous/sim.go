package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/etcd"
)

// quietTimeout is how long nothing may happen.
const quietTimeout = 2 * time.Minute

// A simulation is one job.
type simulation struct {
	options
	job      string
	size     int // nodes that it has when all are there
	started  int // nodes
	store    *store
	nodes    []*node // those that are there
	arrivals chan arrival
}

// simulate takes a job of n nodes from its beginning to its end.
func simulate(ctx context.Context, n int, o options) (r *result, err error) {
	if o.clients == 0 {
		o.clients = min(n, descriptors()/8)
	}
	s := &simulation{options: o, job: fmt.Sprintf("sim-%d-%d", n, os.Getpid()), size: n, arrivals: make(chan arrival, n)}
	if s.store, err = openStore(ctx, o.clients, o.endpoint, s.job); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	r = &result{Nodes: n, Clients: o.clients}
	killed := max(1, n*o.kill/100)
	for _, p := range []struct {
		name  string
		times int
		do    func(context.Context) error
		state string // to be looked at after it; empty: none
	}{
		{"all join", 1, s.grow, "the first round"},
		{fmt.Sprintf("%d are killed", killed), 1, func(ctx context.Context) error { return s.shrink(ctx, killed) }, ""},
		{fmt.Sprintf("%d join again", killed), 1, s.grow, "they are back"},
		{"a worker fails", (o.rounds + 1) / 2, s.fail, "half of the rounds"},
		{"a worker fails", o.rounds / 2, s.fail, "all rounds"},
		{"all succeed", 1, s.succeed, ""},
	} {
		if p.times == 0 {
			continue
		}
		if err := r.measure(p.name, p.times, &s.store.counter, func() error { return p.do(ctx) }); err != nil {
			return nil, err
		}
		if p.state == "" {
			continue
		}
		st, err := s.store.state(ctx, p.state, s.job)
		if err != nil {
			return nil, err
		}
		r.States = append(r.States, st)
	}
	return r, nil
}

// grow starts as many nodes as are missing, and waits until all are in one round.
func (s *simulation) grow(ctx context.Context) error {
	for len(s.nodes) < s.size {
		c := rendezvous.Config{RunID: s.job, Reserve: reserve, Rules: rendezvous.Rules{
			Min: s.size - max(1, s.size*s.kill/100), Max: s.size, MaxRestarts: s.rounds, Lease: s.ttl, LastCall: quietTimeout,
		}}
		r, err := etcd.New(etcd.Config{Config: c, Client: s.store.client(s.started)})
		if err != nil {
			return err
		}
		s.started++
		n := &node{rendezvous: r, self: rendezvous.Node{
			ID:       fmt.Sprintf("node-%d/%d", s.started, rand.IntN(1<<16)),
			Host:     fmt.Sprintf("node-%d", s.started),
			Addr:     fmt.Sprintf("127.%d.%d.%d", 1+s.started>>16, s.started>>8&0xff, s.started&0xff), // this machine's, all of them
			NodeRank: -1, Nproc: 8, Role: "default",
		}}
		s.nodes = append(s.nodes, n)
		go n.run(s.arrivals)
	}
	return s.gather(ctx)
}

// shrink kills some of the nodes, the leader perhaps among them, and waits until the others are in a round without them.
func (s *simulation) shrink(ctx context.Context, killed int) error {
	rand.Shuffle(len(s.nodes), func(i, j int) { s.nodes[i], s.nodes[j] = s.nodes[j], s.nodes[i] })
	left := len(s.nodes) - killed
	dead := make(map[string]bool)
	for _, n := range s.nodes[left:] {
		dead[n.self.ID] = true
	}
	each(s.nodes[left:], (*node).kill)
	s.nodes = s.nodes[:left]
	if !s.expire {
		if err := s.store.forget(ctx, s.job, dead); err != nil {
			return err
		}
	}
	return s.gather(ctx)
}

// fail lets a worker fail, and waits until all nodes are in the next round.
func (s *simulation) fail(ctx context.Context) error {
	n := s.nodes[rand.IntN(len(s.nodes))]
	if err := n.rendezvous.Report(ctx, n.round, &rendezvous.Failure{Node: n.self.ID, Host: n.self.Host, Code: 1, Ending: "exit code 1"}); err != nil {
		return err
	}
	return s.gather(ctx)
}

// succeed lets all workers succeed, and waits until all nodes know.
func (s *simulation) succeed(ctx context.Context) error {
	each(s.nodes, func(n *node) {
		if err := n.rendezvous.Report(ctx, n.round, nil); err != nil {
			s.arrivals <- arrival{n, nil, err}
		}
	})
	for range s.nodes {
		a, err := s.next(ctx)
		if err != nil {
			return err
		}
		var closed *rendezvous.ClosedError
		if !errors.As(a.err, &closed) || !closed.Outcome.Success() {
			return fmt.Errorf("%s: %w", a.node.self.ID, a.err)
		}
	}
	return nil
}

// gather waits until all nodes are in one round.
func (s *simulation) gather(ctx context.Context) error {
	in := make(map[*node]int)
	for _, n := range s.nodes {
		in[n] = 0
	}
	for newest, there := 0, 0; there < len(s.nodes); {
		a, err := s.next(ctx)
		if err != nil {
			return err
		}
		if _, alive := in[a.node]; !alive {
			continue
		}
		if a.err != nil {
			return fmt.Errorf("%s: %w", a.node.self.ID, a.err)
		}
		if a.round.Size != len(s.nodes) { // one on the way there
			continue
		}
		a.node.round, in[a.node] = a.round, a.round.ID
		if a.round.ID > newest {
			newest, there = a.round.ID, 0
		}
		if a.round.ID == newest {
			there++
		}
	}
	return nil
}

func (s *simulation) next(ctx context.Context) (arrival, error) {
	select {
	case a := <-s.arrivals:
		return a, nil
	case <-ctx.Done():
		return arrival{}, ctx.Err()
	case <-time.After(quietTimeout):
		return arrival{}, fmt.Errorf("nothing has happened for %v", quietTimeout)
	}
}

// each calls f for all nodes at once.
func each(nodes []*node, f func(*node)) {
	var all sync.WaitGroup
	for _, n := range nodes {
		all.Go(func() { f(n) })
	}
	all.Wait()
}

// close ends what is there: nodes that are not there any more have been ended before.
func (s *simulation) close() error {
	each(s.nodes, (*node).kill)
	return s.store.close()
}
