package comm

import "context"

// afar is the access to a store that is not on this machine.
func afar(token string, tls bool) (storeAccess, error) {
	cfg := config{secret: secret{token: []byte(token)}, tls: tls}
	notNear(&cfg)
	return cfg.storeAccess()
}

// ListenStoreAfar is ListenStore for clients that are not on this machine, over TLS or not.
func ListenStoreAfar(addr, token string, tls bool) (*StoreServer, error) {
	access, err := afar(token, tls)
	if err != nil {
		return nil, err
	}
	return listenStore(addr, access, nil)
}

// NewTCPStoreAfar is NewTCPStore for a server that is not on this machine, over TLS or not.
func NewTCPStoreAfar(ctx context.Context, addr, token string, tls bool) (*TCPStore, error) {
	access, err := afar(token, tls)
	if err != nil {
		return nil, err
	}
	return dialTCPStore(ctx, addr, access)
}
