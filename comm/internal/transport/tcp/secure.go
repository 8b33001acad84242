package tcp

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"

	"github.com/gorun/gorun/comm/internal/transport"
)

// secure puts TLS on conn, by which rank from has called rank to, as the handshake has proven. The server name binds
// the TLS session to that call, so that a man in the middle cannot join the ends of two calls.
func (t *Transport) secure(conn net.Conn, from, to int) (net.Conn, error) {
	if t.cfg.TLS == nil || t.cfg.Near(conn) {
		return conn, nil
	}
	call := fmt.Sprintf("%x.%d.%d", t.cfg.World, from, to)
	config, side := t.cfg.TLS.ServerTLS(), tls.Server
	if t.cfg.Rank == from {
		config, side = t.cfg.TLS.ClientTLS(), tls.Client
		config.ServerName = call
	}
	config.DynamicRecordSizingDisabled = true // short first records only help web pages
	config.SessionTicketsDisabled = true      // no session is resumed
	below := &wire{Conn: conn}
	secured := side(below, config)
	if err := secured.HandshakeContext(t.ctx); err != nil {
		return nil, err
	}
	if got := secured.ConnectionState().ServerName; got != call {
		return nil, fmt.Errorf("TLS of call %q in call %q", got, call)
	}
	return secureConn{secured, below}, nil
}

// A secureConn closes at once, without the closing alert of TLS: the endpoint has a frame of its own for that.
type secureConn struct {
	*tls.Conn
	below *wire
}

func (c secureConn) Close() error { return c.below.Close() }

// A wire is the connection under TLS. It blocks during the handshake, and then becomes a stream, which never blocks.
type wire struct {
	net.Conn
	stream transport.Stream // nil: the connection is used
	out    []byte           // encrypted, and not yet written to the stream
}

// errWouldBlock says that there is nothing to read yet. It is temporary, so package tls can go on after it.
var errWouldBlock = os.ErrDeadlineExceeded

func (w *wire) Read(b []byte) (int, error) {
	if w.stream == nil {
		return w.Conn.Read(b)
	}
	n, err := w.stream.TryRead(b)
	if n == 0 && err == nil {
		err = errWouldBlock
	}
	return n, err
}

// Write writes all of b to the connection. If there is a stream, it appends b to out, and flush writes it.
func (w *wire) Write(b []byte) (int, error) {
	if w.stream == nil {
		return w.Conn.Write(b)
	}
	w.out = append(w.out, b...)
	return len(b), nil
}
