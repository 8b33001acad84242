package tcp

import (
	"errors"
	"net"
	"time"
)

const (
	// MostConnections is the most connections that a stream can have.
	MostConnections = 16
	// stripe is how many bytes go to one connection before the next one is used. It is short enough that all
	// connections are busy although the buffer of each is small, and long enough to be worth a system call.
	stripe = 128 << 10
)

// A bundle is a stream of one or more connections. Its bytes are cut into stripes of one length, and the connections
// carry stripes in turn (round robin). So both sides know on which connection each byte goes, without a header. A short
// message takes one system call, as on one connection. A long message is under way on all of them.
//
// As a net.Conn it has one reader and one writer at a time.
type bundle struct {
	net.Conn // the first one, for the addresses
	conns    []*net.TCPConn
	in, out  cursor
}

func newBundle(conns []*net.TCPConn, stripe int) *bundle {
	begin := cursor{count: len(conns), stripe: stripe, left: stripe}
	return &bundle{conns[0], conns, begin, begin}
}

// A cursor is a position in a striped stream: the connection in use, and how many bytes of its stripe are left.
type cursor struct{ conn, left, count, stripe int }

// advance moves c by n bytes of the stripe, and reports whether another connection is next.
func (c *cursor) advance(n int) bool {
	if c.left -= n; c.left > 0 {
		return false
	}
	c.conn, c.left = (c.conn+1)%c.count, c.stripe
	return true
}

func (b *bundle) Read(p []byte) (int, error) {
	n, err := b.conns[b.in.conn].Read(p[:min(len(p), b.in.left)])
	b.in.advance(n)
	return n, err
}

func (b *bundle) Write(p []byte) (written int, err error) {
	for written < len(p) && err == nil {
		rest := p[written:]
		var n int
		n, err = b.conns[b.out.conn].Write(rest[:min(len(rest), b.out.left)])
		b.out.advance(n)
		written += n
	}
	return written, err
}

func (b *bundle) Close() error { return b.all((*net.TCPConn).Close) }

func (b *bundle) SetDeadline(t time.Time) error {
	return b.all(func(c *net.TCPConn) error { return c.SetDeadline(t) })
}

func (b *bundle) SetReadDeadline(t time.Time) error {
	return b.all(func(c *net.TCPConn) error { return c.SetReadDeadline(t) })
}

func (b *bundle) SetWriteDeadline(t time.Time) error {
	return b.all(func(c *net.TCPConn) error { return c.SetWriteDeadline(t) })
}

// all calls do for every connection that there is.
func (b *bundle) all(do func(*net.TCPConn) error) (err error) {
	for _, c := range b.conns {
		if c != nil {
			err = errors.Join(err, do(c))
		}
	}
	return err
}
