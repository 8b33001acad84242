package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/gorun/gorun/env/addr"
)

// commAddr is the variable with the address at which other ranks reach a worker. Package comm reads it; users and gorun set it.
const commAddr = "GORUN_COMM_ADDR"

// setLocalAddr replaces an interface or a prefix by the address of this machine that it means. It passes on a name or an address to
// the other nodes as it is: if something between the nodes translates addresses, it need not be this machine's.
func setLocalAddr(o *options, s string) error {
	if !strings.Contains(s, "/") && !addr.IsInterface(s) {
		return setHost(func(o *options) *string { return &o.localAddr })(o, s)
	}
	found, err := addr.Choose(context.Background(), s) // looks up no name
	o.localAddr = found.String()
	return err
}

// withCommAddr adds to the environment of workers by which address others reach them, if somebody has said so. comm.Init fails if that
// is none of this machine's; a program without comm need not mind.
func (o *options) withCommAddr(environ []string) []string {
	environ = slices.DeleteFunc(slices.Clone(environ), func(kv string) bool { return strings.HasPrefix(kv, commAddr+"=") })
	if o.localAddr == "" || o.nnodes == 1 {
		return environ
	}
	return append(environ, commAddr+"="+o.localAddr)
}
