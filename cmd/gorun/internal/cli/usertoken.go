package cli

import (
	"net"

	"github.com/gorun/gorun/env/auth/tokenfile"
)

// settleToken gives nodes that meet on this machine, and were given no token, the user's. file is where it came from; empty: they
// have one, or know each other by certificates, or others can reach them, and a token is to be given.
func (o *options) settleToken() (file string, err error) {
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
		return isLoopback(o.master.Addr)
	}
	return o.hosted() && o.conf["ssl_cert"] == "" && !o.exposed()
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
