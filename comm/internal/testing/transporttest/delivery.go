package transporttest

import (
	"cmp"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
)

// A Delivery decides in which order the bytes of a network arrive, and in what parts. What is written to a stream is
// under way until Next lets it arrive.
type Delivery struct {
	// Sent is called with all that is written, if it is not nil.
	Sent func(from, to int, b []byte)

	mu      sync.Mutex
	arrived sync.Cond
	rng     *rand.Rand
	ways    []*way
	written chan struct{} // has something when bytes are under way
}

// NewDelivery returns a network of size ranks whose bytes arrive in an order that follows from seed.
func NewDelivery(size int, seed uint64) (*Network, *Delivery) {
	d := &Delivery{rng: rand.New(rand.NewPCG(seed, 0)), written: make(chan struct{}, 1)}
	d.arrived.L = &d.mu
	n := NewNetwork(size)
	n.late = d
	return n, d
}

// Written has a value when there may be something for Next.
func (d *Delivery) Written() <-chan struct{} { return d.written }

// Next lets some bytes of one stream arrive, or its end. It reports whether anything was under way.
func (d *Delivery) Next() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	var ready []*way
	for _, w := range d.ways {
		if len(w.underWay) > 0 || w.closed && !w.ended {
			ready = append(ready, w)
		}
	}
	if len(ready) == 0 {
		return false
	}
	w := ready[d.rng.IntN(len(ready))]
	n := len(w.underWay)
	switch {
	case n == 0:
		w.ended = true
	case d.rng.IntN(3) == 0: // in the middle of a frame, or of several
		n = 1 + d.rng.IntN(n)
	}
	w.readable, w.underWay = append(w.readable, w.underWay[:n]...), w.underWay[n:]
	d.arrived.Broadcast()
	return true
}

// stream returns both ends of a new stream.
func (d *Delivery) stream(from, to int) (mine, theirs net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	there, back := &way{from: from, to: to}, &way{from: to, to: from}
	d.ways = append(d.ways, there, back)
	slices.SortStableFunc(d.ways, func(a, b *way) int { return cmp.Or(a.from-b.from, a.to-b.to) })
	return &lateConn{d: d, in: back, out: there}, &lateConn{d: d, in: there, out: back}
}

// A way is one direction of a stream.
type way struct {
	from, to           int
	underWay, readable []byte
	closed             bool // by its writer
	ended              bool // the reader has come to the end
	broken             bool // by its reader
}

// A lateConn is one end of a stream. Its deadlines mean nothing.
type lateConn struct {
	net.Conn // nil: no other method is used
	d        *Delivery
	in, out  *way
}

func (c *lateConn) Read(b []byte) (int, error) {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	for len(c.in.readable) == 0 && !c.in.ended && !c.in.broken {
		c.d.arrived.Wait()
	}
	switch {
	case c.in.broken:
		return 0, net.ErrClosed
	case len(c.in.readable) == 0:
		return 0, io.EOF
	}
	n := copy(b, c.in.readable)
	c.in.readable = c.in.readable[n:]
	return n, nil
}

func (c *lateConn) Write(b []byte) (int, error) {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	switch {
	case c.out.closed:
		return 0, net.ErrClosed
	case c.out.broken:
		return 0, io.ErrClosedPipe
	}
	c.out.underWay = append(c.out.underWay, b...)
	if c.d.Sent != nil {
		c.d.Sent(c.out.from, c.out.to, b)
	}
	c.d.wake()
	return len(b), nil
}

func (c *lateConn) Close() error {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	c.out.closed, c.in.broken, c.in.ended = true, true, true
	c.in.underWay = nil
	c.d.arrived.Broadcast()
	c.d.wake()
	return nil
}

func (d *Delivery) wake() {
	select {
	case d.written <- struct{}{}:
	default:
	}
}
