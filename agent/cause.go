package agent

import (
	"strings"

	"github.com/gorun/gorun/launcher"
	"github.com/gorun/gorun/rendezvous"
)

// A gangFailure is why the last gang of this node was stopped, if a worker of it failed.
type gangFailure struct {
	reported launcher.Exit // the failure that was seen first, and reported
	*WorkerError
}

// lastFailure is that of the gang of which nothing is left; nil: it did not fail.
func (m *machine) lastFailure() *gangFailure {
	if m.reason != failure {
		return nil
	}
	return &gangFailure{m.exits[m.root], m.workerError(m.rootCause())}
}

// explain is why, the reason for a new round after last, with the root cause in the place of the failure that was reported:
// by now as much is known as a summary would tell.
func (f *gangFailure) explain(why string, c Config, last *rendezvous.Round) string {
	if f == nil {
		return why
	}
	f.Reports = readErrorFiles(c, last, append(append([]launcher.Exit{f.Root}, f.Others...), f.Stopped...))
	f.findRootCause()
	told := func(x launcher.Exit) string {
		return (&rendezvous.Failure{Host: c.Node.Host, Rank: x.Rank, Ending: x.String()}).String()
	}
	return strings.Replace(why, told(f.reported), told(f.Root), 1)
}
