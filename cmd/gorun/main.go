// Command gorun starts copies of a program on this and other machines, tells each who it is, and keeps them
// alive. See gorun --help.
package main

import (
	"os"

	"github.com/gorun/gorun/cmd/gorun/internal/cli"
	_ "github.com/gorun/gorun/cmd/gorun/internal/early" // does most of this before main is reached
	"github.com/gorun/gorun/cmd/gorun/internal/elastic"
	"github.com/gorun/gorun/launcher/guard"
)

func main() {
	if guard.Is() { // this binary is also the parent of the workers
		os.Exit(guard.Main())
	}
	os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr, elastic.Etcd{}))
}
