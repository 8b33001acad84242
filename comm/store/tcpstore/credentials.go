package comm

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/gorun/gorun/comm/internal/machine"
	"github.com/gorun/gorun/env/auth"
	"github.com/gorun/gorun/env/auth/admission"
	"github.com/gorun/gorun/env/keepalive"
)

// What a client asks for in the handshake; the number is the version of the format.
const (
	storeHello    = "gorun store 1"
	storeHelloTLS = storeHello + " over TLS"
)

// A storeAccess is what both ends of a connection to a store have in common.
type storeAccess struct {
	secret   secret
	identity *auth.Identity           // nil: nothing is encrypted
	failed   func(err error)          // is told of each attempt to connect that is not the last; may be nil
	near     func(conn net.Conn) bool // does conn stay on this machine? It is then not encrypted
}

// storeAccess is that of the store in which ranks with these settings meet.
func (c *config) storeAccess() (storeAccess, error) {
	a := storeAccess{secret: c.secret, near: c.near}
	if a.near == nil {
		a.near = machine.Inside
	}
	var err error
	if c.tls {
		a.identity, err = auth.NewIdentity(a.secret.token, "store")
	}
	return a, err
}

// byToken returns the access with a given token; without one, with that of secretOf.
func byToken(token []byte) (storeAccess, error) {
	s, err := secretOf(token)
	if err != nil {
		err = fmt.Errorf("store: %w", err)
	}
	return storeAccess{secret: s}, err
}

// hello is what the client of conn says, and its server expects.
func (a *storeAccess) hello(conn net.Conn) string {
	if a.identity == nil || a.near(conn) {
		return storeHello
	}
	return storeHelloTLS
}

// errNoToken is why a client without a token does not connect to a store on another machine: anybody may answer there.
var errNoToken = fmt.Errorf("it is on the network and %w: give every rank the same secret in GORUN_TOKEN", auth.ErrNoToken)

// dial proves to the server at the other end of conn that this is a client, and returns the connection to go on with.
func (a *storeAccess) dial(ctx context.Context, conn net.Conn) (net.Conn, error) {
	if !a.secret.isFor(conn.RemoteAddr()) {
		return nil, errNoToken
	}
	keepAlive(conn)
	hello := a.hello(conn)
	if _, err := auth.Dial(conn, a.secret.token, []byte(hello)); err != nil || hello == storeHello {
		return conn, err
	}
	secured := tls.Client(conn, a.identity.ClientTLS())
	return secured, secured.HandshakeContext(ctx)
}

// allow says whether the client at the other end of conn may try to prove itself.
func (a *storeAccess) allow(conn net.Conn) error {
	if !a.secret.isFor(conn.RemoteAddr()) {
		return errors.New("it comes from the network and there is no token")
	}
	return nil
}

// accept lets the client at the other end of conn prove itself, and returns the connection to go on with. admit may still
// refuse it.
func (a *storeAccess) accept(conn *admission.Conn, admit func() error) (net.Conn, error) {
	keepAlive(conn.NetConn())
	want := a.hello(conn)
	_, err := auth.Accept(conn, a.secret.token, func(hello []byte) ([]byte, error) {
		switch got := string(hello); got {
		case want:
			return nil, admit()
		case storeHello, storeHelloTLS:
			return nil, fmt.Errorf("its end of this connection has TLS: %t, and the rank's TLS: %t: all ranks have WithTLS (gorun: --worker-tls), or none",
				want == storeHelloTLS, got == storeHelloTLS)
		default:
			return nil, fmt.Errorf("this is a %q, not a %q", storeHello, hello)
		}
	})
	if err != nil || want == storeHello {
		return conn.NetConn(), err
	}
	ctx, cancel := context.WithTimeout(context.Background(), admission.DefaultTime)
	defer cancel()
	secured := tls.Server(conn.NetConn(), a.identity.ServerTLS())
	return secured, secured.HandshakeContext(ctx)
}

// keepAlive lets conn end soon after the machine at its other end has vanished, as the streams between ranks do.
func keepAlive(conn net.Conn) { keepalive.Set(conn, !machine.Inside(conn)) }
