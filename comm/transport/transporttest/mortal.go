package transporttest

import (
	"context"
	"net"
	"sync"

	"github.com/gorun/gorun/comm/transport"
)

// A MortalTransport is a transport that can die as if its process had been killed.
type MortalTransport struct {
	transport.Transport

	mu    sync.Mutex
	conns []net.Conn
	dead  bool
}

// Mortal makes tr mortal.
func Mortal(tr transport.Transport) *MortalTransport { return &MortalTransport{Transport: tr} }

// Kill breaks every stream without a word and lets nobody dial any more.
func (m *MortalTransport) Kill() {
	m.mu.Lock()
	m.dead = true
	conns := m.conns
	m.conns = nil
	m.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
	_ = m.Close()
}

// Dial implements transport.Transport.
func (m *MortalTransport) Dial(ctx context.Context, rank int) (net.Conn, error) {
	conn, err := m.Transport.Dial(ctx, rank)
	if err == nil && !m.keep(conn) {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	return conn, err
}

// Serve implements transport.Transport.
func (m *MortalTransport) Serve(h transport.Handler) { m.Transport.Serve(mortalHandler{h, m}) }

type mortalHandler struct {
	transport.Handler
	m *MortalTransport
}

func (h mortalHandler) Connected(rank int, conn net.Conn) {
	if conn != nil && !h.m.keep(conn) {
		_ = conn.Close()
	}
	h.Handler.Connected(rank, conn)
}

func (m *MortalTransport) keep(conn net.Conn) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.conns = append(m.conns, conn)
	return !m.dead
}
