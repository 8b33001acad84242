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

// findRootCause makes the worker at fault the root cause, as far as error files show it: the worker because of which others failed, or,
// among workers that name no other, the one with the oldest file. A worker writes its file when the error happens, and may take long to
// end after that; the connections that it then closes can make a peer fail that ends before it. Times of files are compared only with
// each other, because exit times come from another clock. A crash is its own cause, whatever the files say.
func (e *WorkerError) findRootCause() {
	if e.Elsewhere != nil {
		return
	}
	failed := e.failed()
	e.setRootCause(failed[rootOf(failed, 0, e.ErrorFiles)])
	first, left := e.ErrorFiles[e.Root.Rank]
	if !left || first.Written.IsZero() || crashed(e.Root) {
		return
	}
	root := e.Root
	for _, x := range e.failed() {
		if r := e.ErrorFiles[x.Rank]; !r.Written.IsZero() && r.Written.Before(first.Written) && r.FailedPeer == nil {
			root, first = x, r
		}
	}
	e.setRootCause(root)
}

// setRootCause makes a failure of this node the root cause.
func (e *WorkerError) setRootCause(root launcher.Exit) {
	if root.Rank == e.Root.Rank {
		return
	}
	is := func(x launcher.Exit) bool { return x.Rank == root.Rank }
	e.Others = append([]launcher.Exit{e.Root}, slices.DeleteFunc(e.Others, is)...)
	e.Stopped = slices.DeleteFunc(e.Stopped, is)
	e.Root = root
	if !root.Stopped || root.Signal == 0 { // otherwise its exit code is of the agent's doing
		e.Code = root.Code
	}
}

// rootOf returns the index of the failure that caused the one at index first, as far as the workers know.
func rootOf(failed []launcher.Exit, first int, files map[int]ErrorFile) int {
	return rendezvous.RootCause(first, func(i int) int {
		r := files[failed[i].Rank]
		if r.FailedPeer == nil || crashed(failed[i]) {
			return -1
		}
		for _, rank := range []int{r.FailedPeer.Rank, r.FailedPeer.Finder} {
			other := slices.IndexFunc(failed, func(x launcher.Exit) bool { return x.Rank == rank && x.Failed() })
			if other >= 0 && other != i && isOwn(failed[other], files[rank], r) && !isFinder(failed[i], failed[other], files[rank]) {
				return other
			}
		}
		return -1
	})
}

// isFinder reports whether other has only found what revoker revoked the round for, and lived on until the agent stopped it.
func isFinder(revoker, other launcher.Exit, its ErrorFile) bool {
	return revoker.Revoked != "" && other.Stopped && its.FailedPeer != nil
}

// isOwn reports whether x failed by itself. If the agent stopped x, its error file shows this: it is then older than the file of the
// worker that failed because of x.
func isOwn(x launcher.Exit, its, later ErrorFile) bool {
	return !x.Stopped || !its.Written.IsZero() && its.Written.Before(later.Written)
}

// reportable returns the failure that this node reports when a worker has failed. If that worker failed because of another one on
// this node, it returns the other's failure, and waits for its end if necessary. ended delivers all exits of this node.
func reportable(c Config, round *rendezvous.Round, first launcher.Exit, ended <-chan launcher.Exit) launcher.Exit {
	failed, gone := []launcher.Exit{first}, map[int]bool{first.Rank: true}
	files := readErrorFiles(c, round, failed)
	for limit := time.After(peerTimeout); ; {
		root := failed[rootOf(failed, 0, files)]
		peer := files[root.Rank].FailedPeer
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
				maps.Copy(files, readErrorFiles(c, round, []launcher.Exit{x}))
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

// lastFailure returns the failure of the gang that has just ended; nil: it did not fail.
func (m *stateMachine) lastFailure() *gangFailure {
	if m.reason != failure {
		return nil
	}
	reported := m.failures()[m.first()]
	if m.failing != nil {
		reported = *m.failing
	}
	return &gangFailure{reported, m.workerError(m.rootCause())}
}

// explain returns the reason why the round after last begins. It replaces the reported failure in why with the root
// cause, which this node knows by now.
func (f *gangFailure) explain(why string, c Config, last *rendezvous.Round) string {
	if f == nil {
		return why
	}
	f.ErrorFiles = readErrorFiles(c, last, f.failed())
	f.findRootCause()
	text := func(x launcher.Exit) string {
		return (&rendezvous.Failure{Host: c.Node.Host, Rank: x.Rank, Ending: x.String()}).String()
	}
	return strings.Replace(why, text(f.reported), text(f.Root), 1)
}
