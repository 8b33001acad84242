// Package beforemain runs the proxy of gorun launch instead of main in a process that is to be one, before Go initialises the packages
// that a proxy does not need, as launcher/guard/reexec does for the guard. Only the proxy's speed depends on this.
package beforemain

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/cmd/gorun/internal/launch/remote"
)

func init() {
	// In a terminal, it is somebody who has to be told what this command is for, which main does.
	_, err := unix.IoctlGetTermios(unix.Stdin, unix.TCGETS)
	if len(os.Args) == 2 && os.Args[1] == remote.Command && err != nil {
		code := 0
		if err := remote.Main(); err != nil {
			_, _ = fmt.Fprintf(os.Stderr, "gorun: %v\n", err) // there is nowhere to report that stderr is gone
			code = 1
		}
		os.Exit(code)
	}
}
