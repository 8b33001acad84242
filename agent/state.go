package agent

import (
	"syscall"

	"github.com/gorun/gorun/env/death"
)

// NoRestart is the exit code of a worker that would fail again if it were restarted.
const NoRestart = 93

// A state says what the agent is waiting for. See the diagram in the package comment.
type state int

const (
	joining    state = iota // for a round, and its workers to be started
	running                 // for the workers
	diagnosing              // for a diagnosis: what the workers are doing, because a worker of the job hangs
	stopping                // for the end of the gang, or of a cancelled join
	waiting                 // for what the rendezvous makes of the round: the gang is gone
	done                    // for nothing
)

func (s state) String() string {
	return [...]string{"joining", "running", "diagnosing", "stopping", "waiting", "done"}[s]
}

// An event is something that happened.
type event interface{ event() }

type (
	// started: the join has ended, and this many workers are running.
	started struct{ workers int }
	// startFailed: the join has ended, and nothing is running.
	startFailed struct{ err error }
	// workerExited: one worker has ended.
	workerExited struct{ death.Death }
	// hung: a worker makes no progress. The exit says how it will have ended.
	hung struct{ death.Death }
	// revocation: a worker has revoked the round. It has failed, and lives on if it can.
	revocation struct{ death.Death }
	// diagnosed: what the workers are doing is known, as far as it can be.
	diagnosed struct{}
	// gangGone: every worker has been reported, and nothing of the gang is left.
	gangGone struct{}
	// revoked: nothing is left of the gang but survivors. The exits of the other workers have come before.
	revoked struct{}
	// roundOver: the round is over, because a newer one is to form or the job has ended.
	roundOver struct{ err error }
	// reported: the rendezvous has recorded how this node's workers ended, or could not.
	reported struct{ err error }
	// barrierOver: the exit barrier has timed out.
	barrierOver struct{}
	// interrupted: somebody wants the job to end.
	interrupted struct {
		sig syscall.Signal
		by  Command // what has been asked for instead of a signal; its zero value: it is a signal
	}
	// timedOut: the caller wants the job to end, and nobody has sent a signal.
	timedOut struct{ cause error } // nil: there is none
	// signalled: a signal for the workers has arrived.
	signalled struct{ sig syscall.Signal }
	// suspended: somebody wants to suspend the job.
	suspended struct{}
	// commanded: somebody asks something of the job.
	commanded struct{ Command }
)

func (started) event()      {}
func (startFailed) event()  {}
func (workerExited) event() {}
func (hung) event()         {}
func (revocation) event()   {}
func (diagnosed) event()    {}
func (gangGone) event()     {}
func (revoked) event()      {}
func (roundOver) event()    {}
func (reported) event()     {}
func (barrierOver) event()  {}
func (interrupted) event()  {}
func (timedOut) event()     {}
func (signalled) event()    {}
func (suspended) event()    {}
func (commanded) event()    {}

// An action is something to do now.
type action interface{ action() }

type (
	// join asks for a new round with workers in it.
	join struct{}
	// cancelJoin asks the pending join to end soon: without workers if none has been started yet.
	cancelJoin struct{}
	// cancelStart asks the pending join to end now, and to kill the workers that it has started.
	cancelStart struct{}
	// diagnose collects what the workers are doing. hung is the worker that hangs, if it is one of this node.
	diagnose struct{ hung *death.Death }
	// fail kills the worker that hangs.
	fail struct{ death.Death }
	// stop asks the gang to end: the signal, the grace period, SIGKILL.
	stop struct{ sig syscall.Signal }
	// revoke ends the round: it asks the workers to end that cannot survive it.
	revoke struct{ sig syscall.Signal }
	// kill ends the gang now.
	kill struct{}
	// forward hands a signal to the workers.
	forward struct{ sig syscall.Signal }
	// answer says in the log what an interrupt does.
	answer struct {
		sig   syscall.Signal
		by    Command // as in interrupted
		left  int     // workers that have not ended; negative: there is no gang
		kills bool    // it is not the first one
		early bool    // this signal will still come, or may, and does not kill then
	}
	// suspend suspends the gang and this process, until this is continued.
	suspend struct{}
	// announce logs the first failure of a gang, long before there is a summary.
	announce struct {
		death.Death
		others int // workers that are stopped for it
	}
	// report reports a failure to the rendezvous, or, if it is nil, that all workers exited 0.
	report struct{ failed *death.Death }
	// leave reports to the rendezvous that this node ends its workers and leaves the job.
	leave struct {
		sig   syscall.Signal
		by    Command // as in interrupted
		cause error   // as in timedOut
	}
	// barrier starts the exit barrier: the workers of the other nodes get time to end.
	barrier struct{}
	// finish ends the job on this node, and gives the rendezvous the reason.
	finish struct{ err, why error }
	// reply answers a command: it is carried out, or refused.
	reply struct {
		to  Command
		err error // nil: it is carried out
	}
	// restart asks the rendezvous for a new round, and answers the command.
	restart struct{ Command }
	// scale changes how many nodes a round may have, and answers the command.
	scale struct{ Command }
	// collect finds out what the workers are doing, and answers the command.
	collect struct{ Command }
)

func (join) action()        {}
func (cancelJoin) action()  {}
func (cancelStart) action() {}
func (diagnose) action()    {}
func (fail) action()        {}
func (stop) action()        {}
func (revoke) action()      {}
func (kill) action()        {}
func (forward) action()     {}
func (answer) action()      {}
func (suspend) action()     {}
func (announce) action()    {}
func (report) action()      {}
func (leave) action()       {}
func (barrier) action()     {}
func (finish) action()      {}
func (reply) action()       {}
func (restart) action()     {}
func (scale) action()       {}
func (collect) action()     {}
