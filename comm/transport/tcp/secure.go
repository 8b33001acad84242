package tcp

import (
	"crypto/tls"
	"fmt"
	"net"

	"github.com/gorun/gorun/comm/transport"
)

// secure puts TLS on conn, whose ends have proven to each other that from has called to. The server name binds the TLS to
// that call: ends of two calls cannot be joined by whoever sits between them.
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
	config.DynamicRecordSizingDisabled = true // short records are for who shows the first bytes of a page early
	config.SessionTicketsDisabled = true      // nobody comes back
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

// A secureConn closes at once, without the alert that TLS would send, and wait for: the endpoint has its own goodbye.
type secureConn struct {
	*tls.Conn
	below *wire
}

func (c secureConn) Close() error { return c.below.Close() }

// A wire is what TLS goes over: a connection that blocks, for the handshake, and then the stream made of it, which never does.
type wire struct {
	net.Conn
	stream transport.Stream // nil: the connection is used
	out    []byte           // encrypted, and not yet taken by the stream
}

// errWouldBlock says that there is nothing to read yet. Package tls can go on after it, since it is temporary.
var errWouldBlock net.Error = wouldBlock{}

type wouldBlock struct{}

func (wouldBlock) Error() string   { return "nothing to read yet" }
func (wouldBlock) Timeout() bool   { return true }
func (wouldBlock) Temporary() bool { return true }

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

// Write takes all of b. If there is a stream, flush writes it there.
func (w *wire) Write(b []byte) (int, error) {
	if w.stream == nil {
		return w.Conn.Write(b)
	}
	w.out = append(w.out, b...)
	return len(b), nil
}

// flush writes what is left to the stream, as far as that has room, and reports whether that was all.
func (w *wire) flush() (all bool, err error) {
	for len(w.out) > 0 {
		n, err := w.stream.TryWrite([][]byte{w.out})
		if w.out = w.out[:copy(w.out, w.out[n:])]; err != nil || n == 0 {
			return false, err
		}
	}
	return true, nil
}
