package liveness

import (
	"context"
	"crypto/tls"
	"encoding/json"
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
	hello, err := json.Marshal(hello{To: key, Control: true})
	if err != nil {
		return nil, err
	}
	identity, err := auth.NewIdentity(secret, realm)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	conn, err := admission.Connect(ctx, network.Dial, "tcp", at)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	_, err = auth.Dial(conn, secret, hello)
	encrypted := tls.Client(conn, identity.ClientTLS())
	if err == nil {
		err = encrypted.HandshakeContext(ctx)
	}
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = conn.Close() // err says it all
		return nil, err
	}
	network.KeepAlive(conn, true)
	return encrypted, nil
}
