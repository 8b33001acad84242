package tcp

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// The handler admits or refuses a bundle when its first connection comes. The first connection then waits for the
// others, at most for as long as a handshake may take. A connection that belongs to no bundle that waits is refused.

// pendingBundles are the bundles of which not all connections have come, by the rank that opens them.
type pendingBundles struct {
	mu     sync.Mutex
	byRank map[uint32]*pendingBundle
}

// A pendingBundle has the connections of a bundle that have come.
type pendingBundle struct {
	stream   uint64
	conns    []*net.TCPConn // by index; the first one is added last
	missing  int
	complete chan struct{} // closed when only the first is missing
}

var errNotPending = errors.New("it belongs to no stream that waits for it")

// begin registers the bundle that begins with a first connection.
func (p *pendingBundles) begin(first hello) *pendingBundle {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byRank == nil {
		p.byRank = map[uint32]*pendingBundle{}
	}
	n := int(first.count)
	b := &pendingBundle{stream: first.stream, conns: make([]*net.TCPConn, n), missing: n - 1, complete: make(chan struct{})}
	if n == 1 {
		close(b.complete)
	}
	p.byRank[first.From] = b
	return b
}

// add adds conn, which has said h, to its bundle. If conn is nil, add only checks whether a bundle waits for it.
func (p *pendingBundles) add(h hello, conn *net.TCPConn) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.byRank[h.From]
	if b == nil || b.stream != h.stream || len(b.conns) != int(h.count) || b.conns[h.index] != nil {
		return errNotPending
	}
	if conn != nil {
		b.conns[h.index] = conn
		if b.missing--; b.missing == 0 {
			close(b.complete)
		}
	}
	return nil
}

// end removes b. rank may have begun another bundle since.
func (p *pendingBundles) end(rank uint32, b *pendingBundle) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byRank[rank] == b {
		delete(p.byRank, rank)
	}
}

// assemble returns the stream that begins with first, which has said h, once the other connections of b have come. It
// closes all of them if that fails, or if err, from the handshake of the first one, is not nil.
func (t *Transport) assemble(b *pendingBundle, h hello, first *net.TCPConn, err error) (net.Conn, error) {
	if err == nil {
		late := time.NewTimer(handshakeTimeout)
		defer late.Stop()
		select {
		case <-b.complete:
		case <-late.C:
		case <-t.ctx.Done():
		}
	}
	t.pending.end(h.From, b)
	if err == nil && b.missing > 0 {
		err = fmt.Errorf("%d of %d connections have not come", b.missing, len(b.conns))
	}
	b.conns[0] = first
	whole := newBundle(b.conns, t.stripe)
	if err != nil {
		_ = whole.Close()
		return nil, err
	}
	return t.ready(t.ctx, whole, int(h.From), t.cfg.Rank)
}
