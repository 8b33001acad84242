package transporttest

import (
	"context"
	"net"
	"sync"
	"sync/atomic"

	"github.com/gorun/gorun/comm/transport"
)

// A MortalTransport is a transport that can die as if its process had been killed, or stop as if that had been stopped.
type MortalTransport struct {
	transport.Transport

	dead    atomic.Bool
	stopped atomic.Bool
	end     chan struct{} // closed by Kill
	once    sync.Once
	mu      sync.Mutex
	conns   []net.Conn
}

// Mortal makes tr mortal.
func Mortal(tr transport.Transport) *MortalTransport {
	return &MortalTransport{Transport: tr, end: make(chan struct{})}
}

// Stop lets nothing more be said on any stream, nor heard, until Kill.
func (m *MortalTransport) Stop() { m.stopped.Store(true) }

// Kill breaks every stream without a word and lets nobody dial any more.
func (m *MortalTransport) Kill() {
	m.dead.Store(true) // from here on nothing more is said on any stream
	m.mu.Lock()
	conns := m.conns
	m.conns = nil
	m.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
	m.once.Do(func() { close(m.end) })
	_ = m.Close()
}

// Streams is how many streams there have been.
func (m *MortalTransport) Streams() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.conns)
}

// Dial implements transport.Transport.
func (m *MortalTransport) Dial(ctx context.Context, rank int) (net.Conn, error) {
	conn, err := m.Transport.Dial(ctx, rank)
	if err != nil {
		return nil, err
	}
	return m.keep(conn), nil
}

// Serve implements transport.Transport.
func (m *MortalTransport) Serve(h transport.Handler) { m.Transport.Serve(mortalHandler{h, m}) }

type mortalHandler struct {
	transport.Handler
	m *MortalTransport
}

func (h mortalHandler) Connected(rank int, conn net.Conn) {
	if conn != nil {
		conn = h.m.keep(conn)
	}
	h.Handler.Connected(rank, conn)
}

func (m *MortalTransport) keep(conn net.Conn) net.Conn {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.conns = append(m.conns, conn)
	if m.dead.Load() {
		_ = conn.Close()
	}
	return mortalConn{conn, m}
}

type mortalConn struct {
	net.Conn
	m *MortalTransport
}

func (c mortalConn) Write(b []byte) (int, error) {
	if c.m.stopped.Load() {
		<-c.m.end
	}
	if c.m.dead.Load() {
		return 0, net.ErrClosed
	}
	return c.Conn.Write(b)
}

func (c mortalConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.m.stopped.Load() {
		<-c.m.end
		return 0, net.ErrClosed
	}
	return n, err
}
