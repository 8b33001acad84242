package cli

import (
	"github.com/gorun/gorun/env/auth/tokenfile"
	"github.com/gorun/gorun/rendezvous"
)

// loopbackToken takes the user's own token if the nodes meet on this machine and were given none. file is where it comes from. It is
// empty if they have a token, if they know each other by certificates, or if other machines can reach them, so that somebody must
// give them one.
func (o *options) loopbackToken() (file string, err error) {
	if o.token != "" || !o.meetsHere() {
		return "", nil
	}
	if o.token, file, err = tokenfile.Loopback(); err != nil {
		return "", usagef("%w: give every node the same one, as in --rdzv-token-file=token", err)
	}
	return file, nil
}

// meetsHere reports whether nodes know each other by a token and no other machine can reach where they meet.
func (o *options) meetsHere() bool {
	if o.backend == backendStatic {
		return rendezvous.Endpoint{Host: o.master.Addr}.IsLoopback()
	}
	return o.hosted() && o.conf["ssl_cert"] == "" && !o.exposed()
}
