package agent

import (
	"syscall"

	"github.com/gorun/gorun/launcher"
)

// NoRestart is the exit code with which a worker says that starting it again is of no use.
const NoRestart = 93

// A state is what the agent is waiting for. See the diagram in the package comment.
type state int

const (
	joining  state = iota // for a round, and its workers to be started
	running               // for the workers
	stopping              // for the end of the gang, or of a cancelled join
	done                  // for nothing
)

func (s state) String() string {
	return [...]string{"joining", "running", "stopping", "done"}[s]
}

// An event is something that has happened.
type event interface{ event() }

type (
	// started: the join has ended with so many workers running.
	started struct{ workers int }
	// startFailed: the join has ended with nothing running.
	startFailed struct{ err error }
	// workerExited: one worker has ended.
	workerExited struct{ launcher.Exit }
	// gangGone: every worker has been reported, and nothing of the gang is left.
	gangGone struct{}
	// roundOver: the membership has changed.
	roundOver struct{ err error }
	// interrupted: somebody wants the job to end.
	interrupted struct{ sig syscall.Signal }
	// signalled: a signal has come that is meant for the workers.
	signalled struct{ sig syscall.Signal }
)

func (started) event()      {}
func (startFailed) event()  {}
func (workerExited) event() {}
func (gangGone) event()     {}
func (roundOver) event()    {}
func (interrupted) event()  {}
func (signalled) event()    {}

// An action is something to do now.
type action interface{ action() }

type (
	// join asks for a new round with workers in it, to whom restarts is told.
	join struct {
		restarts int
		again    string // why this is not the first one
		failed   bool   // again is a failure, which has cost a restart
	}
	// cancelJoin asks the pending join to end soon: without workers if none has been started yet.
	cancelJoin struct{}
	// cancelStart asks it to end now, and to kill the workers that it has started.
	cancelStart struct{}
	// stop asks the gang to end: the signal, the grace period, SIGKILL.
	stop struct{ sig syscall.Signal }
	// kill ends the gang now.
	kill struct{}
	// forward hands a signal to the workers.
	forward struct{ sig syscall.Signal }
	// announce tells of the first failure of a gang, long before a summary can.
	announce struct {
		launcher.Exit
		others int // workers that are stopped for it
	}
	// finish ends the job on this node.
	finish struct{ err error }
)

func (join) action()        {}
func (cancelJoin) action()  {}
func (cancelStart) action() {}
func (stop) action()        {}
func (kill) action()        {}
func (forward) action()     {}
func (announce) action()    {}
func (finish) action()      {}
