// Package tcpstore keeps a [store.Store] in the memory of a server, which clients reach over TCP. It is c10d's
// TCPStore, with server and client apart: [Listen] or [Serve] starts the server, [Dial] connects a client.
//
// Every connection begins with the handshake of package auth: both ends prove that they have the same token. Then the
// client sends requests and the server answers them, in any order; a Get that waits for its key holds up nothing else.
// Strangers, slow clients and malformed requests are disconnected, and disturb no other client.
//
// # Layout
//
//	tcpstore.go      Config, and both ends of the handshake
//	wire.go          requests and replies as bytes, and those that wait to be written to a connection
//	server.go        Server: its listener and its connections
//	serverconn.go    one connection of the server; the goroutine that owns the values
//	client.go        Client: the calls of a store, and the requests that are under way
//	dial.go          connecting
package tcpstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"github.com/gorun/gorun/comm/internal/machine"
	"github.com/gorun/gorun/comm/internal/token"
	"github.com/gorun/gorun/env/auth"
	"github.com/gorun/gorun/env/auth/admission"
	"github.com/gorun/gorun/env/network"
)

// A Config is what a server and its clients agree on, and some hooks. All fields are optional.
type Config struct {
	// Token is the secret that both ends prove to have. If it is empty, they use one that all programs of this user have
	// on this machine (see "A token" in docs/comm.md). That one counts on loopback only.
	Token []byte
	// TLS encrypts the connections that leave this machine. The certificates are made of Token, which then has at least
	// [auth.MinSecret] bytes.
	TLS bool
	// Near reports whether conn stays on this machine, so that it is not encrypted. The default goes by addresses.
	Near func(conn net.Conn) bool
	// Log is the server's. The default discards.
	Log *slog.Logger
	// OnRetry is called by [Dial] after each attempt that failed, if it is going to try again. err does not repeat the
	// address.
	OnRetry func(err error)
}

// credentials returns what c says of the handshake.
func (c *Config) credentials() (credentials, error) {
	t, err := token.Or(c.Token)
	if err != nil {
		return credentials{}, fmt.Errorf("store: %w", err)
	}
	creds := credentials{token: t, near: c.Near}
	if creds.near == nil {
		creds.near = machine.Inside
	}
	if c.TLS {
		if creds.identity, err = auth.NewIdentity(t.Bytes(), "store"); err != nil {
			return credentials{}, fmt.Errorf("store: %w", err)
		}
	}
	return creds, nil
}

// What a client asks for in the handshake. The number is the version of the wire format.
const (
	hello    = "gorun store 1"
	helloTLS = hello + " over TLS"
)

// Credentials are how the two ends of a connection prove themselves to each other. The zero credentials let nobody in.
type credentials struct {
	token    token.Token
	identity *auth.Identity // nil: nothing is encrypted
	near     func(conn net.Conn) bool
}

// hello returns what the client of conn says, and its server expects.
func (c *credentials) hello(conn net.Conn) string {
	if c.identity == nil || c.near(conn) {
		return hello
	}
	return helloTLS
}

// errNoToken is why a client without a token does not connect to a server on another machine: anybody may answer there.
var errNoToken = fmt.Errorf("it is on the network and %w: give every rank the same secret in GORUN_TOKEN", auth.ErrNoToken)

// clientHandshake proves to the server at the other end of conn that this is a client. It returns the connection to go
// on with.
func (c *credentials) clientHandshake(ctx context.Context, conn net.Conn) (net.Conn, error) {
	if !c.token.Allows(conn.RemoteAddr()) {
		return nil, errNoToken
	}
	keepAlive(conn)
	want := c.hello(conn)
	if _, err := auth.Dial(conn, c.token.Bytes(), []byte(want)); err != nil || want == hello {
		return conn, err
	}
	secured := tls.Client(conn, c.identity.ClientTLS())
	return secured, secured.HandshakeContext(ctx)
}

// allow returns an error if the client at the other end of conn need not even try.
func (c *credentials) allow(conn net.Conn) error {
	if !c.token.Allows(conn.RemoteAddr()) {
		return errors.New("it comes from the network and there is no token")
	}
	return nil
}

// serverHandshake lets the client at the other end of conn prove itself. It returns the connection to go on with. admit
// may still refuse a client that has proven itself.
func (c *credentials) serverHandshake(conn *admission.Conn, admit func() error) (net.Conn, error) {
	keepAlive(conn.NetConn())
	want := c.hello(conn)
	_, err := auth.Accept(conn, c.token.Bytes(), func(said []byte) ([]byte, error) {
		switch got := string(said); got {
		case want:
			return nil, admit()
		case hello, helloTLS:
			return nil, fmt.Errorf("its end of this connection has TLS: %t, and the rank's TLS: %t: all ranks have WithTLS (gorun: --worker-tls), or none",
				want == helloTLS, got == helloTLS)
		default:
			return nil, fmt.Errorf("this is a %q, not a %q", hello, said)
		}
	})
	if err != nil || want == hello {
		return conn.NetConn(), err
	}
	ctx, cancel := context.WithTimeout(context.Background(), admission.DefaultTime)
	defer cancel()
	secured := tls.Server(conn.NetConn(), c.identity.ServerTLS())
	return secured, secured.HandshakeContext(ctx)
}

// keepAlive has conn end soon after the machine at its other end has vanished, as connections between ranks do.
func keepAlive(conn net.Conn) { network.KeepAlive(conn, !machine.Inside(conn)) }
