package comm

import (
	"github.com/gorun/gorun/comm/internal/worker"
	"github.com/gorun/gorun/env/death"
)

// A Death is how the process of a rank ended, as its agent says.
type Death struct {
	ExitCode    int      // -n: signal n ended it; 0: not known, since its node is gone
	OutOfMemory bool     // the kernel killed it (ExitCode -9), or perhaps a child of it, because memory ran out
	Hung        bool     // gorun killed it, since it made no progress (--hang-timeout)
	Reason      string   // in words, one line: "signal 9 (SIGKILL)"
	Stderr      []string // its last lines on stderr; none if its node is gone
}

// Error is the reason and, if there is one, the last line on stderr.
func (d *Death) Error() string {
	return worker.Describe(d.Reason, d.OutOfMemory, d.ExitCode == -9, d.Stderr)
}

// deathOf returns what the agent says of a death.
func deathOf(d death.Death) *Death {
	return &Death{ExitCode: d.ExitCode, OutOfMemory: d.OutOfMemory, Hung: d.Cause == death.Hang, Reason: d.String(), Stderr: d.Stderr}
}
