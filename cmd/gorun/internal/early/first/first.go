// Package first is what gorun does first of all, when little of the standard library has been initialised: it becomes the
// guard, if it was started as one, and otherwise starts the guard of the workers, which gets ready while the agent does.
// See package early for why. What this package imports is to be as little as possible.
package first

import (
	"os"
	"path"
	"slices"
	"strings"

	"github.com/gorun/gorun/launcher/guard"
)

// Applies reports whether this process is gorun, by its name: it may be a test of it. Where coverage is measured it does
// not, for main alone sets that up.
func Applies() bool {
	return len(os.Args) > 0 && path.Base(os.Args[0]) == "gorun" && !covered()
}

func covered() bool { return os.Getenv("GOCOVERDIR") != "" }

func init() {
	switch {
	case guard.Is() && !covered():
		os.Exit(guard.Main())
	case Applies() && mayRun(os.Args[1:]):
		guard.StartAhead()
	}
}

// mayRun reports whether arguments may be those of a job: it has a program, where the rest asks for a text, or is a worker
// that is built in.
func mayRun(args []string) bool {
	i := slices.IndexFunc(args, func(arg string) bool { return !strings.HasPrefix(arg, "-") })
	return i >= 0 && !strings.HasSuffix(args[i], "-worker")
}
