package agent

import (
	"maps"
	"slices"
	"time"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/rendezvous"
)

// peerTimeout is how long the report of a failure waits for the end of another worker of this node, because of which it happened.
const peerTimeout = time.Second / 2

// findRootCause makes the worker at fault the root cause, as far as this node knows. The error files of workers say because of whom they have
// failed, and when: a worker writes its file when the error happens, and may take long to end after that.
func (e *WorkerError) findRootCause() {
	if e.Elsewhere == nil {
		failed := e.failed()
		e.setRootCause(failed[rootOf(failed, e.ErrorFiles)])
	}
}

// setRootCause makes a failure of this node the root cause.
func (e *WorkerError) setRootCause(root death.Death) {
	if root.Rank == e.Root.Rank {
		return
	}
	is := func(x death.Death) bool { return x.Rank == root.Rank }
	e.Others = append([]death.Death{e.Root}, slices.DeleteFunc(e.Others, is)...)
	e.Stopped = slices.DeleteFunc(e.Stopped, is)
	e.Root = root
	if !root.Stopped || root.Signal() == 0 { // otherwise its exit code is of the agent's doing
		e.Code = root.Code()
	}
}

// rootOf returns the index of the failure that caused the first one, as far as the workers know.
func rootOf(failed []death.Death, files map[int]ErrorFile) int {
	all := make([]death.Failure, len(failed))
	for i, x := range failed {
		r := files[x.Rank]
		all[i] = death.Failure{Death: x, Peer: r.FailedPeer, Written: r.Written}
	}
	return death.RootCause(all, 0, func(rank int) int {
		return slices.IndexFunc(failed, func(x death.Death) bool { return x.Rank == rank && x.Failed() })
	})
}

// reportable returns the failure that this node reports when a worker has failed. If that worker failed because of another one on
// this node, it returns the other's failure, and waits for its end if necessary. ended delivers all exits of this node.
func reportable(c Config, round *rendezvous.Round, first death.Death, ended <-chan death.Death) death.Death {
	failed, gone := []death.Death{first}, map[int]bool{first.Rank: true}
	files := readErrorFiles(c, round, failed)
	for limit := time.After(peerTimeout); ; {
		root := failed[rootOf(failed, files)]
		peer := files[root.Rank].FailedPeer
		if peer == nil || root.IsCrash() || gone[peer.Rank] {
			return root
		}
		if local := peer.Rank - round.Place.FirstRank; local < 0 || local >= round.Node.Nproc { // it is on another node
			return root
		}
		select {
		case x := <-ended:
			killed := x.Stopped && x.Signal() != 0 // its exit code is of the agent's doing
			if gone[x.Rank] = true; x.Failed() && !killed && x.Rank != first.Rank {
				failed = append(failed, x)
				maps.Copy(files, readErrorFiles(c, round, []death.Death{x}))
			}
		case <-limit:
			return root
		}
	}
}

// A gangFailure is why the last gang of this node was stopped, if a worker of it failed.
type gangFailure struct {
	reported death.Death // the failure that was seen first, and reported
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
	return &gangFailure{reported, m.workerError(m.first())}
}

// because says why round follows last. If it does because of the reported failure, this node knows the root cause by now.
func (f *gangFailure) because(round *rendezvous.Round, c Config, last *rendezvous.Round) string {
	if f == nil || round.Cause == nil || round.Cause.Rank != f.reported.Rank {
		return round.Because()
	}
	f.ErrorFiles = readErrorFiles(c, last, f.failed())
	f.findRootCause()
	return rendezvous.Because(&f.Root, round.Why)
}
