package endpoint

import (
	"slices"
	"testing"

	"github.com/gorun/gorun/comm/internal/wire"
	"github.com/gorun/gorun/comm/transport"
)

// A coalescer notes whether short writes wait. It has room for all of them.
type coalescer struct {
	transport.Stream
	on           bool
	acknowledged int
}

func (g *coalescer) Coalesce(on bool) { g.on = on }
func (g *coalescer) Acknowledge()     { g.acknowledged++ }
func (g *coalescer) TryWrite(v [][]byte) (int, error) {
	n := 0
	for _, b := range v {
		n += len(b)
	}
	return n, nil
}

func TestBursts(t *testing.T) {
	short := frame{Header: wire.Header{Kind: wire.Eager}}
	long := frame{Header: wire.Header{Kind: wire.Eager}, Payload: make([]byte, burstLimit+1)}
	long.Size = burstLimit + 1
	row := slices.Repeat([]frame{short}, burstLength)
	for name, c := range map[string]struct {
		frames []frame
		end    func(e *Endpoint)
		want   bool
	}{
		"few":                      {frames: row[1:]},
		"many":                     {frames: row, want: true},
		"many, before a wait":      {frames: row, end: (*Endpoint).beginWait},
		"long ones":                {frames: slices.Repeat([]frame{long}, burstLength)},
		"a long one at the end":    {frames: append(slices.Clone(row), long)},
		"a long one among few":     {frames: append(append(slices.Clone(row[1:]), long), row[1:]...)},
		"another kind":             {frames: append(slices.Clone(row), frame{Header: wire.Header{Kind: wire.CTS}})},
		"many, after that":         {frames: append(append(slices.Clone(row), long), row...), want: true},
		"many to a peer that left": {frames: row, end: func(e *Endpoint) { e.peers[1].coalescer = nil; e.beginWait() }, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := &coalescer{}
			p := newPeer(1)
			p.state, p.stream, p.coalescer = stateUp, g, g
			e := &Endpoint{peers: []*peer{newPeer(0), p}}
			for _, f := range c.frames {
				e.enqueue(p, f)
			}
			if c.end != nil {
				c.end(e)
			}
			if g.on != c.want {
				t.Errorf("short writes wait: %v", g.on)
			}
			if p.out.Len() > 0 {
				t.Errorf("%d frames have not been written", p.out.Len())
			}
		})
	}
}

// What a rank has sent arrives though it neither waits nor sends anything else, whether the peer polls, sleeps or looks
// elsewhere.
func TestBurstsArrive(t *testing.T) {
	for name, opt := range map[string]Options{"": {}, "crowded": {Crowded: true}} {
		t.Run(name, func(t *testing.T) {
			opt.ConnectTimeout = minute
			overTCPWith(t, opt, func(t *testing.T, w *testWorld) {
				const messages = 5 * burstLength
				must(t, w.send(1, 0, 0, []byte{1}), w.recv(0, 1, 0, make([]byte, 1)))
				for _, wait := range []func(op *Op) error{
					func(op *Op) error { return op.Wait(t.Context(), minute) },
					func(op *Op) error { return op.Sleep(t.Context(), minute) },
					func(op *Op) error { <-op.Done(); return op.Err() },
				} {
					for i := range byte(messages) {
						w.send(0, 1, 0, []byte{i})
					}
					for i := range byte(messages) {
						in := make([]byte, 1)
						if err := wait(w.recv(1, 0, 0, in)); err != nil || in[0] != i {
							t.Fatalf("got %d, %v, want %d", in[0], err, i)
						}
					}
				}
			})
		})
	}
}
