package transporttest

import (
	"context"
	"fmt"
	"net"
	"sync"
	"syscall"

	"github.com/gorun/gorun/comm/internal/transport"
)

// A Network joins the transports of the ranks of one world inside this process: ranks are goroutines, and streams are
// synchronous pipes. Tests use it to run whole worlds without sockets, also inside a testing/synctest bubble. It is not
// made for speed.
type Network struct {
	mu    sync.Mutex
	ranks []*rankTransport
	late  *Delivery // nil: bytes arrive at once
}

// NewNetwork returns a network of size ranks.
func NewNetwork(size int) *Network {
	n := &Network{ranks: make([]*rankTransport, size)}
	for r := range n.ranks {
		n.ranks[r] = &rankTransport{net: n, rank: r, serving: make(chan struct{}), closed: make(chan struct{})}
	}
	return n
}

// Transport returns the transport of rank. There is one per rank.
func (n *Network) Transport(rank int) transport.Transport { return n.ranks[rank] }

type rankTransport struct {
	net     *Network
	rank    int
	handler transport.Handler
	serving chan struct{} // closed by Serve
	closed  chan struct{} // closed by Close
	once    sync.Once
	calls   sync.WaitGroup // calls into handler; Add only under net.mu while not closed
}

func (t *rankTransport) Serve(h transport.Handler) {
	t.handler = h
	close(t.serving)
}

func (t *rankTransport) Close() error {
	t.once.Do(func() {
		t.net.mu.Lock()
		defer t.net.mu.Unlock()
		close(t.closed)
	})
	t.calls.Wait()
	return nil
}

// enter begins a call into t's handler. It returns false once t is closed.
func (t *rankTransport) enter() bool {
	t.net.mu.Lock()
	defer t.net.mu.Unlock()
	select {
	case <-t.closed:
		return false
	default:
		t.calls.Add(1)
		return true
	}
}

func (t *rankTransport) Dial(ctx context.Context, rank int) (net.Conn, error) {
	if rank < 0 || rank >= len(t.net.ranks) {
		return nil, fmt.Errorf("no rank %d in a network of %d", rank, len(t.net.ranks))
	}
	peer := t.net.ranks[rank]
	refused := fmt.Errorf("rank %d: %w", rank, syscall.ECONNREFUSED)
	select {
	case <-peer.serving:
	case <-peer.closed:
		return nil, refused
	case <-t.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if !peer.enter() {
		return nil, refused
	}
	defer peer.calls.Done()
	if !peer.handler.Admit(t.rank) {
		return nil, transport.ErrCrossed
	}
	mine, theirs := net.Pipe()
	if t.net.late != nil {
		mine, theirs = t.net.late.stream(t.rank, rank)
	}
	peer.handler.Connected(t.rank, theirs)
	return mine, nil
}
