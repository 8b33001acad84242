// Package reexec runs the guard in a process that was started as one, instead of main. A program that starts workers imports
// it for that:
//
//	import _ "github.com/gorun/gorun/launcher/guard/reexec"
//
// A guard is the agent's own binary, executed again. It branches off in an init function: nothing of main runs in it. That
// function imports little, so Go calls it before it initialises most other packages, for which a guard does not wait: etcd's
// take several times as long as all that a guard needs. Only the guard's speed depends on that order.
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
