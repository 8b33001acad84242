package comm

import (
	"context"
	"errors"
	"strings"

	"github.com/gorun/gorun/comm/internal/worker"
)

// ErrRoundOver is wrapped by the errors of calls that end because gorun is forming another round, and no rank has died as far as is known:
// nodes come or go, or a rank has called Rejoin. [Rejoin] returns the next world.
var ErrRoundOver = worker.ErrRoundOver

// Rejoin returns the world of the next round. A job started with gorun --on-failure=replace survives the failure of a worker: gorun
// starts it again, and the calls of the others on every group fail with a [PeerError]. They, and in the new process [Init], then meet in a
// new world, in which a rank may have another number, and there may be more ranks, or fewer. There you make groups and meshes again, by the
// calls that have made them before.
//
// If the round is not over, Rejoin ends it for all ranks. That is so if a rank has left that others need, an operation has timed out, or
// nothing has failed at all. The calls of the other ranks then fail with [ErrRoundOver], and a message that names this rank and its last
// error. It counts as a failure: gorun forms another round if --max-restarts allows, and ends the job otherwise. A rank that has exited
// is started again. If ctx ends first, Rejoin leaves the round as it is.
//
// Rejoin waits for the next round, closes the world of this one with all its groups, sets the variables of this process's environment that
// Init reads (see package env), and does what Init did, with the same options; but if these had the token of that round, it takes that of
// the new one. Memory of [Alloc] stays valid, with its contents, and belongs to the next world: free what you do not need there. Rejoin waits
// for the round until ctx ends or the timeout is over, and then as long for the other ranks.
//
// Rejoin can be called whenever Init has been, even if Init has failed because the round ended meanwhile; if that happens to Rejoin, call it
// again. All ranks of a node have to call it within gorun's --replace-timeout, or they are started again themselves. They are started again
// sooner if another rank of the node gets a [MissingRanksError] that names them, and calls Rejoin again.
//
// Where workers do not outlive a round, Rejoin returns a [NoRejoinError] with the last failure of a call, or of Init. If there was none, it
// returns an [ArgumentError].
func Rejoin(ctx context.Context) (*Group, error) {
	w, err := process.Rejoin(ctx, whyRejoin)
	if errors.Is(err, worker.ErrCannotRejoin) {
		return nil, noRejoin()
	}
	return joined("Rejoin", w, err)
}

// whyRejoin says why this process ends its round, as far as it knows: in one line, and in the error file. missing are
// ranks that have not come to the round, if that is why.
func whyRejoin(failure error) (why string, missing []int) {
	if failure == nil {
		return "it has called comm.Rejoin, and no call of it has failed", nil
	}
	if m, ok := errors.AsType[*MissingRanksError](failure); ok {
		missing = m.Missing
	}
	if culprit := culpritOf(failure); culprit != nil {
		worker.WriteBecause(failure, culprit)
	}
	return strings.TrimPrefix(failure.Error(), "comm: "), missing
}

// noRejoin returns the error of Rejoin in a process that cannot rejoin.
func noRejoin() error {
	if failure := process.Failed(); failure != nil {
		return &NoRejoinError{Why: worker.WhyNot(), After: failure}
	}
	return &ArgumentError{Op: "Rejoin", Err: worker.WhyNot()}
}
