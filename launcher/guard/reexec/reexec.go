// Package reexec runs the guard instead of main in a process that was started as a guard. A program that starts workers must
// import it:
//
//	import _ "github.com/gorun/gorun/launcher/guard/reexec"
//
// A guard is the agent's own binary, executed again. It branches off in an init function, so main never runs in it. This
// package imports little, so Go initialises it before most other packages, and a guard does not wait for those: etcd's
// packages take several times as long as everything that a guard needs. Only the guard's speed depends on this order.
package reexec

import (
	"os"

	"github.com/gorun/gorun/launcher/guard"
)

func init() {
	if guard.Is() {
		os.Exit(guard.Main()) //nolint:forbidigo // a guard has no other main
	}
}
