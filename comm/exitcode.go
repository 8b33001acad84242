package comm

import (
	"errors"

	"github.com/gorun/gorun/comm/internal/worker"
	"github.com/gorun/gorun/env/auth"
)

// ExitCode returns the exit code with which a program should end because of err:
//
//   - 0 for nil;
//   - 2 for an error that another attempt cannot mend: a wrong argument or environment, calls that differ between ranks or wait for each
//     other, objects that cannot be encoded or decoded, ranks that never came;
//   - 1 for all other errors.
//
// If another attempt would certainly fail as well, ExitCode also writes err to the worker's error file
// (TORCHELASTIC_ERROR_FILE), unless the file exists. These are the errors with code 2, except for ranks that never
// came. Then gorun shows err in its summary and does not start the workers again. If a program exits with 2 without
// that file, gorun starts it again like any other.
//
// The exit code of a [NoRejoinError] is that of the failure in it.
//
// ExitCode also writes a [PeerError] there, and an [AbortError] of another rank, with the rank at fault. If that rank
// has failed too, gorun names it as the root cause, and ends with its exit code. If a PeerError has an address, gorun
// dials that address. If it gets no answer either, the next attempt leaves out one of the two nodes, or waits until
// they reach each other, and does not count as a restart.
func ExitCode(err error) int {
	if e, ok := errors.AsType[*NoRejoinError](err); ok {
		err = e.After
	}
	switch {
	case err == nil:
		return 0
	case failsAgain(err):
		worker.WriteError(err, map[string]any{"restart": false})
		return 2
	}
	if more := becauseOf(err); more != nil {
		worker.WriteError(err, more)
	}
	if _, missing := errors.AsType[*MissingRanksError](err); missing {
		return 2
	}
	return 1
}

// failsAgain reports whether another attempt of the same program would fail with err too.
func failsAgain(err error) bool {
	var (
		argument *ArgumentError
		mismatch *MismatchError
		truncate *TruncateError
		object   *ObjectError
		deadlock *DeadlockError
		refused  *auth.RefusedError // by a store of the same token
	)
	return errors.As(err, &argument) || errors.As(err, &mismatch) || errors.As(err, &truncate) || errors.As(err, &object) ||
		errors.As(err, &deadlock) || errors.Is(err, auth.ErrWrongToken) || errors.Is(err, auth.ErrNoToken) || errors.As(err, &refused)
}

// becauseOf returns what an error file says about the rank because of which this one has failed. It is nil if there is
// none.
func becauseOf(err error) map[string]any {
	if e, ok := errors.AsType[*PeerError](err); ok {
		more := map[string]any{"failed_peer": failedPeer{e.Rank, e.Finder}}
		if e.Addr != "" {
			more["unreachable"] = []unreachable{{e.Rank, e.Addr}}
		}
		return more
	}
	if e, ok := errors.AsType[*AbortError](err); ok && !e.own && !e.selfAtFault {
		return map[string]any{"failed_peer": failedPeer{e.Rank, e.Rank}}
	}
	return nil
}

// failedPeer is a rank because of which another one has failed.
type failedPeer struct {
	Rank   int `json:"rank"`
	Finder int `json:"finder"` // rank that found the fault
}

// unreachable is a rank that did not answer.
type unreachable struct {
	Rank    int    `json:"rank"`
	Address string `json:"address"`
}
