// Command gorun starts copies of a program on one or more machines, tells each copy its rank, and keeps them
// running. See gorun --help.
package main

import (
	"os"

	"github.com/gorun/gorun/cmd/gorun/internal/cli"
	_ "github.com/gorun/gorun/cmd/gorun/internal/launch/remote/beforemain" // and the agent of gorun launch
	_ "github.com/gorun/gorun/launcher/guard/reexec"                       // this binary is also the parent of the workers
	"github.com/gorun/gorun/rendezvous/elastic"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr, elastic.Etcd{})) }
