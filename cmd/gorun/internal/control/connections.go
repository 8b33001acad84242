package control

import (
	"context"
	"net"
	"net/http"
	"sync"

	"github.com/gorun/gorun/env/auth/admission"
)

// slot returns a connection with a slot. If none becomes free, it closes the connection.
func (s *Server) slot(conn net.Conn) (net.Conn, bool) {
	ctx, cancel := context.WithTimeout(s.ctx, slotTimeout)
	defer cancel()
	select {
	case s.slots <- struct{}{}:
		return &slotConn{Conn: conn, release: sync.OnceFunc(func() { <-s.slots })}, true
	case <-ctx.Done():
		_ = conn.Close()
		return nil, false
	}
}

// streams is a net.Listener of connections that others have accepted.
type streams struct {
	conns  chan net.Conn
	done   chan struct{} // closed at the end
	served bool
	once   sync.Once
}

func (l *streams) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *streams) Addr() net.Addr { return &net.TCPAddr{} }
func (l *streams) Close() error   { l.end(); return nil }
func (l *streams) end()           { l.once.Do(func() { close(l.done) }) }

// A listener delivers the connections of users who may steer the job.
type listener struct {
	*admission.Listener
	server *Server
}

// Accept implements net.Listener. Connections that are too many wait, and are closed in the end.
func (l *listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := conn.(*admission.Conn)
		if !c.Admit() { // the kernel has said who it is
			continue
		}
		if slot, ok := l.server.slot(c.NetConn()); ok {
			return slot, nil
		}
	}
}

// A slotConn gives back its slot when it is closed, or before.
type slotConn struct {
	net.Conn
	release func()
}

type connKey struct{}

// releaseSlot gives back the slot of a request that may take long.
func releaseSlot(r *http.Request) {
	if c, ok := r.Context().Value(connKey{}).(*slotConn); ok {
		c.release()
	}
}

func (c *slotConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}
