package agent

import (
	"errors"
	"reflect"
	"syscall"
	"testing"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/rendezvous"
)

func exited(rank, code int) workerExited {
	return workerExited{death.Death{Rank: rank, LocalRank: rank, Pid: 100 + rank, ExitCode: code}}
}

// asked makes an exit one that came after the agent had asked for it.
func asked(w workerExited) workerExited {
	w.Stopped = true
	return w
}

// failedAt is what a node says of the failure of a worker, and closedBy the end of the job for it.
func failedAt(host string, x death.Death) *rendezvous.Failure {
	x.Host = host
	return &rendezvous.Failure{Death: x}
}

func closedBy(f *rendezvous.Failure) *rendezvous.ClosedError {
	return &rendezvous.ClosedError{Outcome: rendezvous.Outcome{Code: f.Code(), Failure: f}}
}

// crash is a SIGKILL that the agent did not send.
var crash = workerExited{death.Death{Rank: 2, LocalRank: 2, Pid: 102, ExitCode: -int(syscall.SIGKILL)}}

var (
	newRound   = roundOver{rendezvous.ErrNewRound}
	succeeded  = roundOver{&rendezvous.ClosedError{}}
	reasoned   = &rendezvous.ClosedError{Outcome: rendezvous.Outcome{Code: 7, Reason: "too few nodes"}}
	errNoRound = errors.New("no round")
	errAway    = errors.New("no answer")
	errOver    = errors.New("the time is over")
	sigint     = interrupted{sig: syscall.SIGINT}
	sigterm    = interrupted{sig: syscall.SIGTERM}
)

// A story is what happens to a machine, what it must answer, and where it is then.
type story struct {
	name  string
	steps []step
	state state
}

type step struct {
	event event
	want  []action
}

var (
	termAll = []action{stop{syscall.SIGTERM}}
	again   = []action{join{}}
	success = []action{report{}}
)

func rank0(code int) death.Death { return exited(0, code).Death }

// own is the end of the job because of rank 0.
func own(code int) roundOver { return roundOver{closedBy(failedAt("here", rank0(code)))} }

func ends(err error) []action { return []action{finish{err, err}} }

// tell returns the actions that must follow the failure that stops a gang.
func tell(e workerExited, others int) []action {
	return []action{stop{syscall.SIGTERM}, report{&e.Death}, announce{e.Death, others}}
}

func tellStories(t *testing.T, stories []story) { tellStoriesOf(t, stateMachine{}, stories) }

// tellStoriesOf begins each story with the same machine.
func tellStoriesOf(t *testing.T, begin stateMachine, stories []story) {
	for _, c := range stories {
		t.Run(c.name, func(t *testing.T) {
			m := begin
			if got, want := m.begin(), []action{join{}}; !reflect.DeepEqual(got, want) {
				t.Fatalf("begin: %v, want %v", got, want)
			}
			for i, s := range c.steps {
				if got := m.Step(s.event); !reflect.DeepEqual(got, s.want) {
					t.Fatalf("step %d, %T%v:\n got %s\nwant %s", i, s.event, s.event, show(got), show(s.want))
				}
			}
			if m.state != c.state {
				t.Errorf("state %s, want %s", m.state, c.state)
			}
		})
	}
}
