package liveness

import (
	"context"
	"crypto/tls"
	"net"

	"github.com/gorun/gorun/env/auth"
	"github.com/gorun/gorun/env/auth/admission"
	"github.com/gorun/gorun/env/network"
)

// People who hold the secret may have something to say to the process itself. Their connections come to the same port, and are encrypted
// after the handshake: what they say must not be changed on the way.

// realm is what the keys of such connections are for.
const realm = "control"

// handOver passes a connection on.
func (d *Detector) handOver(conn *admission.Conn) {
	identity, err := auth.NewIdentity(*d.secret.Load(), realm)
	if err != nil {
		conn.TurnedAway(err)
		_ = conn.Close() // err says it all
		return
	}
	network.KeepAlive(conn.NetConn(), true)
	d.config.Control(tls.Server(conn.NetConn(), identity.ServerTLS()))
}

// Dial connects to the process that answers to key at an address, as somebody who has something to say to it. All that is said is encrypted.
func Dial(ctx context.Context, secret []byte, key, at string) (net.Conn, error) {
	identity, err := auth.NewIdentity(secret, realm)
	if err != nil {
		return nil, err
	}
	var encrypted *tls.Conn
	h := hello{To: key, Control: true}
	_, err = connectTo(ctx, network.Dial, secret, at, h, func(ctx context.Context, conn net.Conn) error {
		encrypted = tls.Client(conn, identity.ClientTLS())
		return encrypted.HandshakeContext(ctx)
	})
	if err != nil {
		return nil, err
	}
	return encrypted, nil
}
