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
		worker.WriteFinal(err)
		return 2
	}
	if culprit := culpritOf(err); culprit != nil {
		worker.WriteBecause(err, culprit)
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

// culpritOf returns the rank because of which this one has failed, or nil.
func culpritOf(err error) *worker.Culprit {
	if e, ok := errors.AsType[*PeerError](err); ok {
		return &worker.Culprit{Rank: e.Rank, Finder: e.Finder, Addr: e.Addr}
	}
	if e, ok := errors.AsType[*AbortError](err); ok && !e.own && !e.selfAtFault {
		return &worker.Culprit{Rank: e.Rank, Finder: e.Rank}
	}
	return nil
}
