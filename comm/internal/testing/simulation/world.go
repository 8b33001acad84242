// Package simulation has worlds for tests, whose members are goroutines of the test, and calls with the results that
// they must have.
//
// A world without shared memory runs in a bubble of testing/synctest. There, messages arrive in an order that follows
// from a seed: the next part of a message arrives when no member can go on without it. So a run can be repeated, stopped
// at each delivery, and has no time limits of its own: what waits for ever ends by the group's timeout, at once.
package simulation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorun/gorun/comm/internal/choice"
	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/endpoint"
	"github.com/gorun/gorun/comm/internal/machine"
	"github.com/gorun/gorun/comm/internal/shm/acceptor"
	"github.com/gorun/gorun/comm/internal/testing/transporttest"
)

// Timeout is that of groups.
const Timeout = time.Minute

// A Config says what a world is like.
type Config struct {
	Size      int
	Seed      uint64 // of the order in which messages arrive
	Nodes     []int  // of the members, which share memory there; nil: nobody does, and all are on one node
	ChunkSize int    // 0: choice.ChunkSize
	Overlap   bool   // stages overlap
	Tuning    string

	Sent func(from, to int, b []byte) // called in InOrder with all that members write to each other, if it is not nil
}

func (c Config) String() string {
	return fmt.Sprintf("%d members, nodes %v, chunks of %d, tuning %q, seed %d", c.Size, c.Nodes, c.ChunkSize, c.Tuning, c.Seed)
}

// A World is the members of a group.
type World struct {
	Groups []*core.Group

	mortal []*transporttest.MortalTransport

	mu    sync.Mutex
	steps int            // how many parts of messages have arrived
	at    map[int]func() // what is to happen before so many have
}

var token = []byte("a secret of 16 bytes and more")

// Failer is what of testing.TB a world needs; rapid.T has it as well.
type Failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// New returns a world. It must be closed. If it has no Nodes, its messages arrive at once, in the order of the Go scheduler.
func New(t Failer, c Config) *World {
	t.Helper()
	return newWorld(t, c, transporttest.NewNetwork(c.Size))
}

func newWorld(t Failer, c Config, network *transporttest.Network) *World {
	t.Helper()
	w := &World{at: map[int]func(){}}
	tuning, err := core.ParseTuning(c.Tuning)
	if err != nil {
		t.Fatalf("%v: %v", c, err)
	}
	if c.ChunkSize == 0 {
		c.ChunkSize = choice.ChunkSize
	}
	peers, acceptors := make([]core.Peer, c.Size), make([]*acceptor.Acceptor, c.Size)
	ranks := make([]int, c.Size)
	for r := range peers {
		ranks[r] = r
		peers[r] = core.Peer{Host: "here", PID: os.Getpid(), Place: machine.Place{Kernel: "here", Network: "here", Processes: "here"}}
		if c.Nodes == nil {
			continue
		}
		if acceptors[r], err = acceptor.Listen(token, slog.New(slog.DiscardHandler)); err != nil {
			t.Fatalf("%v: %v", c, err)
		}
		peers[r].Acceptor, peers[r].Network = acceptors[r].Address(), fmt.Sprint("node ", c.Nodes[r])
	}
	for r := range peers {
		m := transporttest.Mortal(network.Transport(r))
		world := core.NewWorld(core.WorldConfig{
			Rank: r, Peers: peers, Log: slog.New(slog.DiscardHandler), ChunkSize: c.ChunkSize, Acceptor: acceptors[r], Token: token,
			MustShare: true, OnFallback: func(err error) error { return err },
		}, m, endpoint.Options{})
		world.MayOverlap = c.Overlap
		g, err := core.NewGroup(world, 1, ranks, Timeout, tuning)
		if err != nil {
			t.Fatalf("%v: %v", c, err)
		}
		w.Groups, w.mortal = append(w.Groups, g), append(w.mortal, m)
	}
	return w
}

// Run runs program on every member, and returns the error of each. An error ends the group, so that no one waits.
func (w *World) Run(program func(g *core.Group) error) []error {
	errs := make([]error, len(w.Groups))
	var wg sync.WaitGroup
	for r, g := range w.Groups {
		wg.Go(func() {
			if errs[r] = program(g); errs[r] != nil {
				g.Abort(errs[r])
			}
		})
	}
	wg.Wait()
	return errs
}

// Close ends the world: every member leaves.
func (w *World) Close() {
	w.Run(func(g *core.Group) error {
		g.Comm.Close()
		g.Release()
		return errors.Join(g.World.Endpoint.Close(), g.World.Acceptor.Close())
	})
}

// Kill breaks the streams of a member, as if its process had been killed.
func (w *World) Kill(rank int) { w.mortal[rank].Kill() }

// At has f called when step parts of messages have arrived.
func (w *World) At(step int, f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at[step] = f
}

// Steps is how many parts of messages have arrived.
func (w *World) Steps() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.steps
}

// due returns what is to happen now, once.
func (w *World) due() func() {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.at[w.steps]
	delete(w.at, w.steps)
	return f
}

func (w *World) count() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.steps++
}

// InOrder runs body with a world without shared memory in a bubble. body runs the members; At may be called before.
func InOrder(t *testing.T, c Config, body func(w *World)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		network, delivery := transporttest.NewDelivery(c.Size, c.Seed)
		delivery.Sent = c.Sent
		w := newWorld(t, c, network)
		over, ended := context.WithCancel(t.Context())
		go w.deliver(over, delivery)
		body(w)
		w.Close()
		ended()
	})
}

// deliver lets messages arrive, one part at a time, whenever no member can go on.
func (w *World) deliver(over context.Context, d *transporttest.Delivery) {
	for {
		synctest.Wait()
		if f := w.due(); f != nil {
			f()
			continue
		}
		if d.Next() {
			w.count()
			continue
		}
		select {
		case <-d.Written():
		case <-over.Done():
			return
		}
	}
}
