package node

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gorun/gorun/env/network"
	"github.com/gorun/gorun/env/testing/testkit"
	"github.com/gorun/gorun/rendezvous/internal/store"
	"github.com/gorun/gorun/rendezvous/internal/testing/storetest"
)

func TestMain(m *testing.M) {
	// No name server is asked for hosts of tests, such as n0.test: its answer may come when the tests have ended.
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("there is no name server")
	}}
	goleak.VerifyTestMain(m)
}

// A server is a store in memory, with the clock of the machine, which can go away and come back.
type server struct {
	mu     sync.Mutex
	memory *storetest.Memory
	up     bool
	front  *way // for all that have no other
}

func startServer(t *testing.T) *server {
	testkit.Once(t)
	s := &server{up: true, memory: newMemory()}
	s.front = &way{server: s}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		for ctx.Err() == nil {
			if m := s.now(); m != nil {
				m.Expire()
			}
			network.Pause(ctx, 10*time.Millisecond)
		}
	})
	t.Cleanup(func() { cancel(); all.Wait() })
	return s
}

func newMemory() *storetest.Memory {
	return storetest.NewMemory(rand.New(rand.NewPCG(rand.Uint64(), 0)))
}

func (s *server) client() *way { return s.front }

// now is the store while it is up.
func (s *server) now() *storetest.Memory {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.up {
		return nil
	}
	return s.memory
}

func (s *server) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *server) stop() { s.change(func() { s.up = false }) }

// again starts it with its data.
func (s *server) again() { s.change(func() { s.memory.Extend(); s.up = true }) }

// anew starts it without its data.
func (s *server) anew() { s.change(func() { s.memory, s.up = newMemory(), true }) }

// A way is how an agent reaches the server. It can be cut, or fall silent.
type way struct {
	*server
	cut, silent bool // guarded by server.mu
}

var errCut = errors.New("the way is cut")

// reach waits while the way is silent, and fails when it is cut.
func (w *way) reach(ctx context.Context) (*storetest.Memory, error) {
	for {
		w.mu.Lock()
		m, cut, silent := w.memory, w.cut || !w.up, w.silent
		w.mu.Unlock()
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case cut:
			return nil, errCut
		case !silent:
			return m, nil
		}
		network.Pause(ctx, 5*time.Millisecond)
	}
}

func (w *way) setCut(cut bool) { w.change(func() { w.cut = cut }) }

func (w *way) hush(silent bool) { w.change(func() { w.silent = silent }) }

func (w *way) Read(ctx context.Context, queries ...store.Query) (a store.Answer, err error) {
	m, err := w.reach(ctx)
	if err == nil {
		a, err = m.Read(ctx, queries...)
	}
	return a, err
}

func (w *way) Commit(ctx context.Context, t store.Txn) (a store.Answer, err error) {
	m, err := w.reach(ctx)
	if err == nil {
		a, err = m.Commit(ctx, t)
	}
	return a, err
}

func (w *way) Keep(ctx context.Context, id store.Lease, ttl time.Duration) (store.Lease, time.Duration, error) {
	m, err := w.reach(ctx)
	if err != nil {
		return 0, 0, err
	}
	return m.Keep(ctx, id, ttl)
}

// Watch looks often whether it still reaches what it watches.
func (w *way) Watch(ctx context.Context, keys store.Range, changed func([]store.Event)) {
	for ; ctx.Err() == nil; network.Pause(ctx, 5*time.Millisecond) {
		m, err := w.reach(ctx)
		if err != nil {
			continue
		}
		seen := m.Rev()
		for changed(nil); ctx.Err() == nil; network.Pause(ctx, 2*time.Millisecond) {
			now, err := w.reach(ctx)
			if err != nil || now != m {
				break
			}
			events, rev, all := m.Since(seen, keys)
			if seen = rev; !all || len(events) > 0 {
				changed(events)
			}
		}
	}
}

func (w *way) Close() error { return nil }

// agentsBehindWays starts agents of which each has its own way to the server.
func (j *job) agentsBehindWays(s *server, n int) (agents []*agent, ways []*way) {
	j.t.Helper()
	for i := range n {
		own := &way{server: s}
		agents = append(agents, j.agent(fmt.Sprint("n", i), func(c *Config) { c.Store = own }))
		ways = append(ways, own)
	}
	return agents, ways
}

// keysLeft is what the server has below prefix.
func keysLeft(s *server, prefix string) (left []string) {
	for _, kv := range s.memory.Lookup(store.Below(prefix)) {
		left = append(left, kv.Key)
	}
	return left
}

// awaitNobodyJoins waits until no node that etcd knows of waits in a Join.
func awaitNobodyJoins(t *testing.T, j *job) {
	t.Helper()
	joins := func(kv store.KV) bool {
		doc, err := decode[nodeDoc](kv)
		return err != nil || doc.Joining
	}
	for deadline := time.Now().Add(patience); slices.ContainsFunc(j.nodes(), joins); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a node still joins")
		}
	}
}

// nodes are what the server knows of the job's.
func (j *job) nodes() []store.KV {
	return j.server.memory.Lookup(store.Below(keysOf(DefaultPrefix, j.config.RunID).nodes()))
}
