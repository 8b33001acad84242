package embedded

import (
	"crypto/tls"

	"go.etcd.io/etcd/client/pkg/v3/transport"

	"github.com/gorun/gorun/env/auth"
)

// realm keeps certificates for the rendezvous apart from others of the same secret.
const realm = "rendezvous"

// ClientTLS lets a client in where servers have the same secret, and takes no other server for one of theirs. It is good
// for as long as the process lives.
func ClientTLS(secret []byte) (*tls.Config, error) {
	own, err := auth.NewIdentity(secret, realm)
	if err != nil {
		return nil, err
	}
	return own.ClientTLS(), nil
}

// serverTLS is for the clients of a server; nil: everybody.
func (c *Config) serverTLS(own *auth.Identity) (*tls.Config, error) {
	return c.tls(own, (*auth.Identity).ServerTLS, transport.TLSInfo.ServerConfig)
}

// clientTLS is for this server as a client of the others; nil: none.
func (c *Config) clientTLS(own *auth.Identity) (*tls.Config, error) {
	return c.tls(own, (*auth.Identity).ClientTLS, transport.TLSInfo.ClientConfig)
}

func (c *Config) tls(own *auth.Identity, ofSecret func(*auth.Identity) *tls.Config, ofFiles func(transport.TLSInfo) (*tls.Config, error)) (*tls.Config, error) {
	switch {
	case own != nil:
		return ofSecret(own), nil
	case c.Files != nil:
		return ofFiles(c.Files.tls())
	}
	return nil, nil
}
