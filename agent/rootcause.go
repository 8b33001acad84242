package agent

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gorun/gorun/launcher"
	"github.com/gorun/gorun/rendezvous"
)

// peerTimeout is how long the report of a failure waits for the end of another worker of this node, because of which it happened.
const peerTimeout = time.Second / 2

// findRootCause makes the worker at fault the root cause, as far as error files tell: the one because of which others failed, and of those
// that do not know of any other the one whose file is the oldest. A worker writes it when its error happens, and may take long to end
// after that; the connections that it then closes can fail a peer that ends before it. The files are compared with one another only:
// exit times are of another clock. A crash is its own cause, whatever the files say.
func (e *WorkerError) findRootCause() {
	if e.Elsewhere != nil {
		return
	}
	failed := e.failed()
	e.setRootCause(failed[rootOf(failed, 0, e.Reports)])
	first, left := e.Reports[e.Root.Rank]
	if !left || first.Written.IsZero() || crashed(e.Root) {
		return
	}
	accused := e.Root
	for _, x := range e.failed() {
		if r := e.Reports[x.Rank]; !r.Written.IsZero() && r.Written.Before(first.Written) && r.FailedPeer == nil {
			accused, first = x, r
		}
	}
	e.setRootCause(accused)
}

// setRootCause makes a failure of this node the root cause.
func (e *WorkerError) setRootCause(accused launcher.Exit) {
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

// rootOf returns the index of the failure because of which one of them happened, as far as the workers know.
func rootOf(failed []launcher.Exit, first int, reports map[int]Report) int {
	return rendezvous.RootCause(first, func(i int) int {
		r := reports[failed[i].Rank]
		if r.FailedPeer == nil || crashed(failed[i]) {
			return -1
		}
		for _, rank := range []int{r.FailedPeer.Rank, r.FailedPeer.Finder} {
			other := slices.IndexFunc(failed, func(x launcher.Exit) bool { return x.Rank == rank && x.Failed() })
			if other >= 0 && other != i && isOwn(failed[other], reports[rank], r) {
				return other
			}
		}
		return -1
	})
}

// isOwn reports whether x failed by itself. If the agent has stopped it, that shows in its error file, which is older then than that of
// the worker that failed because of it.
func isOwn(x launcher.Exit, its, later Report) bool {
	return !x.Stopped || !its.Written.IsZero() && its.Written.Before(later.Written)
}

// reportable is the failure of this node to be reported, as one of its workers has failed: that of another one, if the first failed
// because of it. That one may not have ended yet. ended are all exits so far, and those that follow.
func reportable(c Config, round *rendezvous.Round, first launcher.Exit, ended <-chan launcher.Exit) launcher.Exit {
	failed, gone := []launcher.Exit{first}, map[int]bool{first.Rank: true}
	reports := readErrorFiles(c, round, failed)
	for limit := time.After(peerTimeout); ; {
		root := failed[rootOf(failed, 0, reports)]
		peer := reports[root.Rank].FailedPeer
		if peer == nil || crashed(root) || gone[peer.Rank] {
			return root
		}
		if local := peer.Rank - round.Place.FirstRank; local < 0 || local >= round.Node.Nproc { // it is on another node
			return root
		}
		select {
		case x := <-ended:
			killed := x.Stopped && x.Signal != 0 // its exit code is of the agent's doing
			if gone[x.Rank] = true; x.Failed() && !killed && x.Rank != first.Rank {
				failed = append(failed, x)
				maps.Copy(reports, readErrorFiles(c, round, []launcher.Exit{x}))
			}
		case <-limit:
			return root
		}
	}
}

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
	f.Reports = readErrorFiles(c, last, f.failed())
	f.findRootCause()
	text := func(x launcher.Exit) string {
		return (&rendezvous.Failure{Host: c.Node.Host, Rank: x.Rank, Ending: x.String()}).String()
	}
	return strings.Replace(why, text(f.reported), text(f.Root), 1)
}
