package control

import (
	"net"
	"net/http"
	"sync"
)

// streams is a net.Listener of connections that others have accepted.
type streams struct {
	conns chan net.Conn
	done  chan struct{} // closed at the end
	once  sync.Once
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
func (l *streams) Close() error   { l.once.Do(func() { close(l.done) }); return nil }

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
