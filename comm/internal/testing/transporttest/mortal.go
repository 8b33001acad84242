package transporttest

import (
	"context"
	"net"
	"sync"
	"sync/atomic"

	"github.com/gorun/gorun/comm/internal/transport"
)

// A MortalTransport is a transport that can die as if its process had been killed, or stop as if its process had been
// stopped.
type MortalTransport struct {
	transport.Transport

	dead    atomic.Bool
	stopped atomic.Bool
	end     chan struct{} // closed by Kill
	once    sync.Once
	mu      sync.Mutex
	conns   []net.Conn
	streams []transport.Stream
}

// Mortal returns tr as a MortalTransport.
func Mortal(tr transport.Transport) *MortalTransport {
	return &MortalTransport{Transport: tr, end: make(chan struct{})}
}

// Stop stops all streams, until Kill: nothing more is sent or received.
func (m *MortalTransport) Stop() { m.stopped.Store(true) }

// Kill breaks every stream without a goodbye. After it nothing can be dialled.
func (m *MortalTransport) Kill() {
	m.dead.Store(true) // from now on nothing more is sent on any stream
	m.mu.Lock()
	conns, streams := m.conns, m.streams
	m.conns, m.streams = nil, nil
	m.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
	for _, s := range streams {
		s.Shutdown()
	}
	m.once.Do(func() { close(m.end) })
	_ = m.Close()
}

// Streams returns how many streams there have been.
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
	if c, ok := conn.(transport.Pollable); ok {
		return mortalPollable{mortalConn{conn, m}, c}
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

// A mortalPollable is a mortalConn that is Pollable. Its stream is mortal as well.
type mortalPollable struct {
	mortalConn
	pollable transport.Pollable
}

func (c mortalPollable) Stream() (transport.Stream, error) {
	s, err := c.pollable.Stream()
	if err != nil {
		return nil, err
	}
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	c.m.streams = append(c.m.streams, s)
	if c.m.dead.Load() {
		s.Shutdown()
	}
	if w, ok := s.(transport.MemoryStream); ok {
		return mortalMemory{mortalStream{s, c.m}, w}, nil
	}
	if g, ok := s.(transport.Coalescer); ok {
		return mortalCoalescer{mortalStream{s, c.m}, g}, nil
	}
	return mortalStream{s, c.m}, nil
}

// A mortalCoalescer is a mortalStream that is a Coalescer.
type mortalCoalescer struct {
	mortalStream
	coalescer transport.Coalescer
}

func (g mortalCoalescer) Coalesce(on bool)   { g.coalescer.Coalesce(on) }
func (g mortalCoalescer) CoalesceLimit() int { return g.coalescer.CoalesceLimit() }
func (g mortalCoalescer) Acknowledge()       { g.coalescer.Acknowledge() }

// A mortalMemory is a mortalStream that is a MemoryStream.
type mortalMemory struct {
	mortalStream
	memory transport.MemoryStream
}

func (w mortalMemory) Put(a, b []byte) bool {
	return !w.m.dead.Load() && !w.m.stopped.Load() && w.memory.Put(a, b)
}

func (w mortalMemory) Peek(polls int) []byte {
	if w.m.dead.Load() || w.m.stopped.Load() {
		return nil
	}
	return w.memory.Peek(polls)
}

func (w mortalMemory) Skip(n int) { w.memory.Skip(n) }

type mortalStream struct {
	transport.Stream
	m *MortalTransport
}

func (s mortalStream) TryWrite(v [][]byte) (int, error) {
	switch {
	case s.m.dead.Load():
		return 0, net.ErrClosed
	case s.m.stopped.Load():
		return 0, nil
	}
	return s.Stream.TryWrite(v)
}

func (s mortalStream) TryRead(b []byte) (int, error) {
	switch {
	case s.m.dead.Load():
		return 0, net.ErrClosed
	case s.m.stopped.Load():
		return 0, nil
	}
	return s.Stream.TryRead(b)
}

// Arm makes only the end of the stream wake those who wait for a stopped transport.
func (s mortalStream) Arm(writable bool) uint32 {
	const onlyErrors = 8 // POLLERR
	events := s.Stream.Arm(writable)
	if s.m.stopped.Load() {
		return onlyErrors
	}
	return events
}
