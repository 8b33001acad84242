package core

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/choice"
	"github.com/gorun/gorun/comm/internal/endpoint"
	"github.com/gorun/gorun/comm/internal/reduce"
	"github.com/gorun/gorun/comm/internal/testing/transporttest"
)

// board is what the ranks of inProcess share: the operands of the call under way.
type board struct {
	mu       sync.Mutex
	all      sync.Cond
	operands [][]byte
	complete [][]byte // the last ones of all ranks
	come     int
}

// add adds one rank's operands, and returns those of all ranks once they are there.
func (b *board) add(rank int, operands []byte) [][]byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.operands[rank] = bytes.Clone(operands)
	n := len(b.operands)
	round := b.come / n
	if b.come++; b.come%n == 0 {
		b.complete = slices.Clone(b.operands)
		b.all.Broadcast()
	}
	for b.come/n == round {
		b.all.Wait()
	}
	return b.complete // the next ones are not complete before this rank has added to them
}

// inProcess is a backend of ranks that are goroutines of one process. It counts what is called.
type inProcess struct {
	g         *Group
	kinds     []call.Kind // that it takes, of AllReduce, Barrier and Broadcast
	board     *board
	fails     error
	runs      int
	abandoned int
	closed    int
}

func (p *inProcess) Takes(c *Collective) bool {
	return slices.Contains(p.kinds, c.kind())
}

func (p *inProcess) Run(c *Collective) error {
	p.runs++
	if err := c.begin(); err != nil {
		return err
	}
	if p.fails != nil {
		return p.fails
	}
	c.widen(false)
	switch c.kind() {
	case call.KindBarrier:
		p.board.add(p.g.rank, nil)
	case call.KindBroadcast:
		copy(c.out.Buf, p.board.add(p.g.rank, c.out.Buf)[c.root()])
	default:
		c.setOperands(c.out.Buf, true)
		all := p.board.add(p.g.rank, c.operands)
		copy(c.operands, all[0])
		for _, operands := range all[1:] {
			c.kernel(c.operands, c.operands, operands)
		}
		if err := c.finish(nil); err != nil {
			return err
		}
	}
	p.g.Comm.End(c.seq, nil)
	return nil
}

func (p *inProcess) Abandon()       { p.abandoned++ }
func (p *inProcess) Interrupt()     {}
func (p *inProcess) Compare() error { return nil }
func (p *inProcess) Moves() uint64  { return uint64(p.runs) }
func (p *inProcess) Close()         { p.closed++ }

// groupsWith returns the group of all ranks, which has the backend inProcess.
func groupsWith(t *testing.T, size int) (groups []*Group, backends []*inProcess) {
	network, b := transporttest.NewNetwork(size), &board{operands: make([][]byte, size)}
	b.all.L = &b.mu
	ranks := make([]int, size)
	for r := range ranks {
		ranks[r] = r
	}
	for r := range size {
		cfg := WorldConfig{Rank: r, Peers: make([]Peer, size), Log: slog.New(slog.DiscardHandler), ChunkSize: 1 << 10}
		w := NewWorld(cfg, network.Transport(r), endpoint.Options{})
		t.Cleanup(func() { _ = w.Endpoint.Close() })
		g, err := NewGroup(w, 1, ranks, time.Minute, choice.Tuning{})
		if err != nil {
			t.Fatal(err)
		}
		p := &inProcess{g: g, board: b, kinds: []call.Kind{call.KindAllReduce, call.KindBarrier}}
		g.use(p)
		groups, backends = append(groups, g), append(backends, p)
	}
	return groups, backends
}

// onAll calls f for every rank at once.
func onAll(groups []*Group, f func(g *Group)) {
	var wg sync.WaitGroup
	for _, g := range groups {
		wg.Go(func() { f(g) })
	}
	wg.Wait()
}

// TestBackend: a group lets the first backend that takes a call carry it out, and messages the others, in one order.
func TestBackend(t *testing.T) {
	groups, backends := groupsWith(t, 3)
	seconds := make([]*inProcess, len(groups))
	for i, g := range groups {
		seconds[i] = &inProcess{g: g, board: backends[i].board, kinds: []call.Kind{call.KindBarrier, call.KindBroadcast}}
		g.use(seconds[i])
	}
	onAll(groups, func(g *Group) {
		sum, root, avg := []int32{int32(g.rank), 1}, []int32{int32(g.rank) + 5}, []float64{float64(g.rank)}
		all := make([]int32, 3)
		for _, a := range []Args{
			{Kind: call.KindAllReduce, Type: reduce.Int32, Count: 2, Op: &call.Basic[reduce.Sum], Out: reduce.Bytes(sum)},
			{Kind: call.KindBroadcast, Type: reduce.Int32, Count: 1, Root: 2, Out: reduce.Bytes(root)},
			{Kind: call.KindBarrier},
			{Kind: call.KindAllGather, Type: reduce.Int32, Count: 1, In: reduce.Bytes(root), Out: reduce.Bytes(all)},
			{Kind: call.KindAllReduce, Type: reduce.Float64, Count: 1, Op: &call.Basic[call.CodeAvg], Out: reduce.Bytes(avg)},
		} {
			if err := g.Do(t.Context(), &a, nil); err != nil {
				t.Errorf("rank %d: %v", g.rank, err)
			}
		}
		if sum[0] != 3 || sum[1] != 3 || root[0] != 7 || avg[0] != 1 || !slices.Equal(all, []int32{7, 7, 7}) {
			t.Errorf("rank %d has %v, %v, %v, %v", g.rank, sum, root, avg, all)
		}
		if first, second := backends[g.rank].runs, seconds[g.rank].runs; first != 3 || second != 1 {
			t.Errorf("rank %d: the backends have carried out %d and %d calls, want 3 and 1", g.rank, first, second)
		}
		g.Comm.Close()
		g.Release()
		if first, second := backends[g.rank].closed, seconds[g.rank].closed; first != 1 || second != 1 {
			t.Errorf("rank %d: closed %d and %d times", g.rank, first, second)
		}
	})
}

// TestBackendFails: the group fails with the error of its backend, on all members.
func TestBackendFails(t *testing.T) {
	groups, backends := groupsWith(t, 2)
	backends[1].fails = errors.New("the device is lost")
	onAll(groups, func(g *Group) {
		if g.rank == 0 { // by messages, so that it learns of the failure
			c := new(Collective)
			g.Start(c, &Args{Kind: call.KindBroadcast, Type: reduce.Int8, Count: 1, Root: 1, Out: make([]byte, 1)}, nil)
			if err := c.Wait(context.Background()); err == nil {
				t.Error("rank 0 does not learn of the failure of rank 1")
			}
			return
		}
		err := g.Do(t.Context(), &Args{Kind: call.KindBarrier}, nil)
		if !errors.Is(err, backends[1].fails) || backends[1].abandoned != 1 {
			t.Errorf("got %v, abandoned %d times", err, backends[1].abandoned)
		}
		if err := g.Do(t.Context(), &Args{Kind: call.KindBarrier}, nil); err == nil || backends[1].runs != 1 {
			t.Errorf("a group that has failed carries out a call: %v", err)
		}
	})
}
