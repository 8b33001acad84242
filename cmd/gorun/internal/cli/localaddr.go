package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/gorun/gorun/env/network"
)

// commAddr is the variable that holds the address at which other ranks reach a worker. Package comm reads it; users and gorun set
// it.
const commAddr = "GORUN_COMM_ADDR"

// setLocalAddr replaces an interface or a prefix with the address of this machine that it means. It keeps a name or an address as
// it is: behind address translation, it need not be an address of this machine.
func setLocalAddr(o *options, s string) error {
	if !strings.Contains(s, "/") && !network.IsInterface(s) {
		return setHost(func(o *options) *string { return &o.localAddr })(o, s)
	}
	found, err := network.ChooseAddr(context.Background(), s) // looks up no name
	o.localAddr = found.String()
	return err
}

// withCommAddr adds the address at which others reach the workers to their environment, if the user has given one. If it is not an
// address of this machine, comm.Init fails; a program without comm does not need it.
func (o *options) withCommAddr(environ []string) []string {
	environ = slices.DeleteFunc(slices.Clone(environ), func(kv string) bool { return strings.HasPrefix(kv, commAddr+"=") })
	if o.localAddr == "" || o.nnodes == 1 {
		return environ
	}
	return append(environ, commAddr+"="+o.localAddr)
}
