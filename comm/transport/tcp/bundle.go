package tcp

import (
	"net"
	"time"
)

const (
	// MostConnections is how many connections a stream can have.
	MostConnections = 16
	// stripe is how many bytes go on one connection before the next one has its turn: few, so that all are busy though each has
	// room for little, but enough for a call of the system to be worth it.
	stripe = 128 << 10
)

// A bundle is a stream of several connections. Its bytes are cut into stripes of one length, of which every connection carries
// one in turn: both sides know where each byte goes, and nothing is said about it. A short message takes one call of the system,
// as on one connection; of a long one a part is under way on each.
//
// As a net.Conn it has one reader and one writer at a time.
type bundle struct {
	net.Conn // the first, whose addresses are those of all
	conns    []net.Conn
	in, out  turn
}

func newBundle(conns []net.Conn, stripe int) *bundle {
	begin := turn{of: len(conns), stripe: stripe, left: stripe}
	return &bundle{conns[0], conns, begin, begin}
}

// A turn is whose it is, and how many bytes of its stripe are left.
type turn struct{ at, left, of, stripe int }

// took counts n bytes of the stripe, and says whether that was its end.
func (t *turn) took(n int) bool {
	if t.left -= n; t.left > 0 {
		return false
	}
	t.at, t.left = (t.at+1)%t.of, t.stripe
	return true
}

func (b *bundle) Read(p []byte) (int, error) {
	n, err := b.conns[b.in.at].Read(p[:min(len(p), b.in.left)])
	b.in.took(n)
	return n, err
}

func (b *bundle) Write(p []byte) (written int, err error) {
	for written < len(p) && err == nil {
		rest := p[written:]
		var n int
		n, err = b.conns[b.out.at].Write(rest[:min(len(rest), b.out.left)])
		b.out.took(n)
		written += n
	}
	return written, err
}

func (b *bundle) Close() error { return b.all(net.Conn.Close) }

func (b *bundle) SetDeadline(t time.Time) error {
	return b.all(func(c net.Conn) error { return c.SetDeadline(t) })
}

func (b *bundle) SetReadDeadline(t time.Time) error {
	return b.all(func(c net.Conn) error { return c.SetReadDeadline(t) })
}

func (b *bundle) SetWriteDeadline(t time.Time) error {
	return b.all(func(c net.Conn) error { return c.SetWriteDeadline(t) })
}

// all does the same with every connection, and returns the first error.
func (b *bundle) all(do func(net.Conn) error) (err error) {
	for _, c := range b.conns {
		if e := do(c); err == nil {
			err = e
		}
	}
	return err
}
