package cli

import (
	"github.com/gorun/gorun/env/auth"
	"github.com/gorun/gorun/rendezvous"
)

// loopbackToken uses the user's own token if the nodes meet on this machine and were given no token. file is its file. It is empty
// if the nodes have a token or certificates, or if other machines can reach them: then the user must give them a token.
func (o *options) loopbackToken() (file string, err error) {
	if o.token != "" || !o.meetsHere() {
		return "", nil
	}
	if o.token, file, err = auth.LoopbackToken(); err != nil {
		return "", usagef("%w: give every node the same token, as in --rdzv-token-file=token", err)
	}
	return file, nil
}

// meetsHere reports whether the nodes use a token and meet where no other machine can reach them.
func (o *options) meetsHere() bool {
	if o.backend == backendStatic {
		return rendezvous.Endpoint{Host: o.master.Addr}.IsLoopback()
	}
	return o.hosted() && o.conf["ssl_cert"] == "" && !o.exposed()
}
