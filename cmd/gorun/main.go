// Command gorun starts copies of a program on one or more machines, tells each copy its rank, and keeps them
// running. See gorun --help.
package main

import (
	"os"
	"runtime/debug"

	"github.com/gorun/gorun/cmd/gorun/internal/cli"
	"github.com/gorun/gorun/rendezvous/embedded"
	"github.com/gorun/gorun/rendezvous/etcd"
)

// gcPercent keeps the garbage collector from running while gorun starts, which takes a tenth less processor time without it. An agent has few
// megabytes alive.
const gcPercent = 400

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	embedded.WithoutProxies()
	os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr, etcd.Backend{}))
}
