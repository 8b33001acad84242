// Package early runs gorun before main does, so that a job of one node does not wait for etcd. Import it for that.
//
// The packages that come with etcd (gRPC, protobuf, Prometheus) take 9 ms to be initialised, where the rest of gorun
// takes 1 ms, and gorun is executed twice for a job: as the agent, and as its guard. Go initialises packages in the order
// of their imports and, where that leaves a choice, of their import paths. So this package and package first have their
// turn before most of those: first needs little of the standard library, and this one waits for package net alone. Gorun
// runs here as if etcd were not linked, and ends the process. If the command line needs etcd it does nothing, main does.
//
// One worker's start on two busy cores, where MPICH takes 6.0 ms: 28.3 ms from main; 14.5 ms from here; 12.9 ms with the
// guard that package first has started by then. Without etcd it is 9.5 ms.
package early

import (
	"os"

	"github.com/gorun/gorun/cmd/gorun/internal/cli"
	"github.com/gorun/gorun/cmd/gorun/internal/early/first"
	"github.com/gorun/gorun/launcher/guard"
)

func init() {
	if !first.Applies() {
		return
	}
	exit := make(chan int)
	// Not in this goroutine: while packages are initialised it is bound to its thread, which makes it slow.
	go func() { exit <- cli.Main(os.Args[1:], os.Stdout, os.Stderr, nil) }()
	code := <-exit
	guard.CloseAhead()
	if code != cli.NeedsEtcd {
		os.Exit(code)
	}
}
