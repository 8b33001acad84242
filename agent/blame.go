package agent

import (
	"slices"

	"github.com/gorun/gorun/launcher"
)

// accuse makes the worker whose error file is the oldest the root cause. A worker writes it when its error happens, and
// may take long to end after that; the connections that it then closes can fail a peer that ends before it. The files
// are compared with one another only: exit times are of another clock, and a crash needs no witness.
func (e *WorkerError) accuse() {
	first, left := e.Reports[e.Root.Rank]
	if !left || first.Written.IsZero() || crashed(e.Root) {
		return
	}
	accused := e.Root
	for _, x := range slices.Concat(e.Others, e.Stopped) {
		if r := e.Reports[x.Rank]; !r.Written.IsZero() && r.Written.Before(first.Written) {
			accused, first = x, r
		}
	}
	if accused.Rank == e.Root.Rank {
		return
	}
	is := func(x launcher.Exit) bool { return x.Rank == accused.Rank }
	e.Others = append([]launcher.Exit{e.Root}, slices.DeleteFunc(e.Others, is)...)
	e.Stopped = slices.DeleteFunc(e.Stopped, is)
	e.Root = accused
	if !accused.Stopped || accused.Signal == 0 { // otherwise its exit code is of the agent's doing
		e.Code = accused.Code
	}
}
