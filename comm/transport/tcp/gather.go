package tcp

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// The first connection of a bundle is admitted or not, and the bundle with it. It then waits for the others: nobody else's are
// taken in, and they have no longer than a handshake may take.

// gatherings are the bundles to this rank that are not whole yet, by the rank that opens them.
type gatherings struct {
	mu sync.Mutex
	by map[uint32]*gathering
}

// A gathering is the connections of a bundle that have come.
type gathering struct {
	stream  uint64
	conns   []net.Conn // the first comes last
	missing int
	whole   chan struct{} // closed when only the first is missing
}

var errNotAwaited = errors.New("part of a stream that is not awaited")

// begin awaits what is to follow a first connection, if anything is.
func (g *gatherings) begin(first hello) *gathering {
	if first.parts == 1 {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.by == nil {
		g.by = map[uint32]*gathering{}
	}
	n := int(first.parts)
	s := &gathering{stream: first.stream, conns: make([]net.Conn, n), missing: n - 1, whole: make(chan struct{})}
	g.by[first.rank] = s
	return s
}

// add takes in conn, of which h has been said; nil only asks whether one would be.
func (g *gatherings) add(h hello, conn net.Conn) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.by[h.rank]
	if s == nil || s.stream != h.stream || len(s.conns) != int(h.parts) || s.conns[h.part] != nil {
		return errNotAwaited
	}
	if conn != nil {
		s.conns[h.part] = conn
		if s.missing--; s.missing == 0 {
			close(s.whole)
		}
	}
	return nil
}

// end lets s take no more in. rank may have begun another stream since.
func (g *gatherings) end(rank uint32, s *gathering) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.by[rank] == s {
		delete(g.by, rank)
	}
}

// gathered is the stream that begins with first: that alone, or with what s gathers. If err is not nil, it is not to be.
func (t *Transport) gathered(s *gathering, rank uint32, first net.Conn, err error) (net.Conn, error) {
	if s == nil {
		return first, err
	}
	if err == nil {
		late := time.NewTimer(handshakeTimeout)
		defer late.Stop()
		select {
		case <-s.whole:
		case <-late.C:
		case <-t.ctx.Done():
		}
	}
	t.gatherings.end(rank, s)
	if err == nil && s.missing > 0 {
		err = fmt.Errorf("%d of %d connections have not come", s.missing, len(s.conns))
	}
	s.conns[0] = first
	if err != nil {
		closeConns(s.conns)
		return nil, err
	}
	return newBundle(s.conns, t.stripe), nil
}

func closeConns(conns []net.Conn) {
	for _, c := range conns {
		if c != nil {
			_ = c.Close()
		}
	}
}
