package tcp

import (
	"crypto/tls"
	"fmt"
	"net"
)

// secure puts TLS on conn, whose ends have proven to each other that from has called to. The server name binds the TLS to
// that call: ends of two calls cannot be joined by whoever sits between them.
func (t *Transport) secure(conn net.Conn, from, to int) (net.Conn, error) {
	if t.cfg.TLS == nil || t.cfg.Near(conn) {
		return conn, nil
	}
	call := fmt.Sprintf("%x.%d.%d", t.cfg.World, from, to)
	secured := tls.Server(conn, t.cfg.TLS.ServerTLS())
	if t.cfg.Rank == from {
		config := t.cfg.TLS.ClientTLS()
		config.ServerName = call
		secured = tls.Client(conn, config)
	}
	if err := secured.HandshakeContext(t.ctx); err != nil {
		return nil, err
	}
	if got := secured.ConnectionState().ServerName; got != call {
		return nil, fmt.Errorf("TLS of call %q in call %q", got, call)
	}
	return secureConn{secured, conn}, nil
}

// A secureConn closes at once, without the alert that TLS would send, and wait for: the endpoint has its own goodbye.
type secureConn struct {
	*tls.Conn
	raw net.Conn
}

func (c secureConn) Close() error { return c.raw.Close() }
