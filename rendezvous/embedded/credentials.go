package embedded

import (
	"crypto/tls"

	"github.com/gorun/gorun/env/auth"
)

// realm keeps certificates for the rendezvous apart from others of the same secret.
const realm = "rendezvous"

// MinSecret is the least length of a secret, in bytes.
const MinSecret = auth.MinSecret

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
	switch {
	case own != nil:
		return own.ServerTLS(), nil
	case c.Files != nil:
		return c.Files.tls().ServerConfig()
	}
	return nil, nil
}

// clientTLS is for this server as a client of the others; nil: none.
func (c *Config) clientTLS(own *auth.Identity) (*tls.Config, error) {
	switch {
	case own != nil:
		return own.ClientTLS(), nil
	case c.Files != nil:
		return c.Files.tls().ClientConfig()
	}
	return nil, nil
}
