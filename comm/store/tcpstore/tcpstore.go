// Package tcpstore keeps a [store.Store] in the memory of a server, which clients reach over TCP. It is c10d's TCPStore,
// with server and client apart: [Listen] or [Serve] starts the server, [Dial] connects a client.
//
// Every connection begins with the handshake of package auth: both ends prove that they have the same token. Then the
// client sends requests and the server answers them, in any order; a Get that waits for its key holds up nothing else.
// Strangers, slow clients and malformed requests are disconnected, and disturb no other client.
//
// # Layout
//
//	tcpstore.go      Config
//	credentials.go   both ends of the handshake
//	wire.go          requests and replies as bytes
//	sendqueue.go     the frames that wait to be written to a connection
//	server.go        Server: its listener and its connections
//	serverconn.go    one connection of the server; the goroutine that owns the values
//	client.go        Client: the calls of a store
//	call.go          requests that are under way
//	dial.go          connecting
package tcpstore

import (
	"fmt"
	"log/slog"
	"net"

	"github.com/gorun/gorun/comm/internal/machine"
	"github.com/gorun/gorun/comm/internal/token"
	"github.com/gorun/gorun/env/auth"
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
