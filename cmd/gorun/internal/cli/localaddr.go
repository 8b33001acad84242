package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/gorun/gorun/env/addr"
)

// commAddr is the variable by which users, and gorun, tell package comm by which address of its machine a worker is reached.
const commAddr = "GORUN_COMM_ADDR"

// lookupLimit is how long a name may take to be looked up.
const lookupLimit = 5 * time.Second

// setLocalAddr takes an interface or a prefix for the address of this machine that it means. A name or an address is told to the
// other nodes as it is: with something between that translates addresses, it need not be this machine's.
func setLocalAddr(o *options, s string) error {
	if !strings.Contains(s, "/") && !addr.IsInterface(s) {
		return setHost(func(o *options) *string { return &o.localAddr })(o, s)
	}
	found, err := addr.Choose(context.Background(), s) // looks up no name
	o.localAddr = found.String()
	return err
}

// tellAddress adds to the environment of workers by which address others reach them, if somebody has said so and it is one of
// this machine's.
func (o *options) tellAddress(environ []string) []string {
	environ = slices.DeleteFunc(slices.Clone(environ), func(kv string) bool { return strings.HasPrefix(kv, commAddr+"=") })
	if o.localAddr == "" || o.nnodes == 1 {
		return environ
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookupLimit)
	defer cancel()
	found, err := addr.Choose(ctx, o.localAddr)
	if err != nil {
		return environ // workers take the one on the way to rank 0
	}
	return append(environ, commAddr+"="+found.String())
}
