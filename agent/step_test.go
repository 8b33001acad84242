package agent

import (
	"errors"
	"reflect"
	"syscall"
	"testing"

	"github.com/gorun/gorun/launcher"
)

func exited(rank, code int) workerExited {
	return workerExited{launcher.Exit{Rank: rank, LocalRank: rank, Pid: 100 + rank, Code: code}}
}

// asked makes an exit one that came after the agent had asked for it.
func asked(w workerExited) workerExited {
	w.Stopped = true
	return w
}

// crash is a SIGKILL that the agent did not send.
var crash = workerExited{launcher.Exit{Rank: 2, LocalRank: 2, Pid: 102, Code: 137, Signal: syscall.SIGKILL}}

var (
	errNewcomer = errors.New("a node has come")
	errNoRound  = errors.New("no round")
	sigint      = interrupted{syscall.SIGINT}
	sigterm     = interrupted{syscall.SIGTERM}
)

// TestStep tells whole stories: events, and the actions that each must cause.
func TestStep(t *testing.T) {
	type step struct {
		event event
		want  []action
	}
	rank0 := func(code int) launcher.Exit { return exited(0, code).Exit }
	termAll := []action{stop{syscall.SIGTERM}}
	tell := func(e workerExited, others int) []action {
		return []action{stop{syscall.SIGTERM}, announce{e.Exit, others}}
	}
	for _, c := range []struct {
		name  string
		max   int
		steps []step
		state state
	}{
		{"success", 0, []step{
			{started{3}, nil},
			{exited(1, 0), nil},
			{exited(0, 0), nil},
			{gangGone{}, []action{finish{}}},
			{sigint, nil},
		}, done},
		{"failure without restarts", 0, []step{
			{started{3}, nil},
			{exited(0, 3), tell(exited(0, 3), 2)},
			{exited(2, 1), nil},
			{asked(exited(1, 143)), nil},
			{gangGone{}, []action{finish{&WorkerError{Root: rank0(3), Others: []launcher.Exit{exited(2, 1).Exit}, Stopped: []launcher.Exit{asked(exited(1, 143)).Exit}}}}},
		}, done},
		{"failure, restart, success", 1, []step{
			{started{3}, nil},
			{exited(0, 3), tell(exited(0, 3), 2)},
			{gangGone{}, []action{join{1, "rank 0 (local rank 0, pid 100): exit code 3; restart 1 of 1", true}}},
			{started{3}, nil},
			{exited(0, 0), nil},
			{gangGone{}, []action{finish{}}},
		}, done},
		{"nobody is told at once what the summary says in a moment", 1, []step{
			{started{1}, nil},
			{exited(0, NoRestart), termAll},
			{gangGone{}, []action{finish{&WorkerError{Root: rank0(NoRestart), MaxRestarts: 1}}}},
		}, done},
		{"a lone worker that is started again", 1, []step{
			{started{1}, nil},
			{exited(0, 3), tell(exited(0, 3), 0)},
			{gangGone{}, []action{join{1, "rank 0 (local rank 0, pid 100): exit code 3; restart 1 of 1", true}}},
			{started{1}, nil},
			{exited(0, 3), termAll},
		}, stopping},
		{"only those that still run are others", 0, []step{
			{started{3}, nil},
			{exited(2, 0), nil},
			{exited(0, 3), tell(exited(0, 3), 1)},
		}, stopping},
		{"restarts used up", 1, []step{
			{started{3}, nil},
			{exited(0, 3), tell(exited(0, 3), 2)},
			{gangGone{}, []action{join{1, "rank 0 (local rank 0, pid 100): exit code 3; restart 1 of 1", true}}},
			{started{3}, nil},
			{exited(0, 4), tell(exited(0, 4), 2)},
			{gangGone{}, []action{finish{&WorkerError{Root: rank0(4), Restarts: 1, MaxRestarts: 1}}}},
		}, done},
		{"the peers of a crash are reported before it", 1, []step{
			{started{3}, nil},
			{exited(0, 1), tell(exited(0, 1), 2)},
			{exited(1, 1), nil},
			{crash, nil},
			{gangGone{}, []action{join{1, "rank 2 (local rank 2, pid 102): signal 9 (SIGKILL); restart 1 of 1", true}}},
			{started{3}, nil},
			{exited(0, 1), tell(exited(0, 1), 2)},
			{crash, nil},
			{gangGone{}, []action{finish{&WorkerError{Root: crash.Exit, Others: []launcher.Exit{rank0(1)}, Restarts: 1, MaxRestarts: 1}}}},
		}, done},
		{"a worker that we killed did not crash", 0, []step{
			{started{3}, nil},
			{exited(0, 1), tell(exited(0, 1), 2)},
			{asked(crash), nil},
			{gangGone{}, []action{finish{&WorkerError{Root: rank0(1), Stopped: []launcher.Exit{asked(crash).Exit}}}}},
		}, done},
		{"the first of two crashes", 0, []step{
			{started{3}, nil},
			{crash, tell(crash, 2)},
			{workerExited{launcher.Exit{Code: 139, Signal: syscall.SIGSEGV}}, nil},
			{gangGone{}, []action{finish{&WorkerError{Root: crash.Exit, Others: []launcher.Exit{{Code: 139, Signal: syscall.SIGSEGV}}}}}},
		}, done},
		{"no restart asked for", 5, []step{
			{started{3}, nil},
			{exited(0, NoRestart), tell(exited(0, NoRestart), 2)},
			{gangGone{}, []action{finish{&WorkerError{Root: rank0(NoRestart), MaxRestarts: 5}}}},
		}, done},
		{"another worker asks for no restart", 5, []step{
			{started{3}, nil},
			{exited(0, 1), tell(exited(0, 1), 2)},
			{asked(exited(1, NoRestart)), nil},
			{gangGone{}, []action{finish{&WorkerError{Root: rank0(1), Stopped: []launcher.Exit{asked(exited(1, NoRestart)).Exit}, MaxRestarts: 5}}}},
		}, done},
		{"a new round costs nothing", 0, []step{
			{started{3}, nil},
			{roundOver{errNewcomer}, termAll},
			{roundOver{errNewcomer}, nil},
			{asked(exited(0, 143)), nil},
			{gangGone{}, []action{join{0, "the round is over: a node has come", false}}},
		}, joining},
		{"a failure after the round's end costs nothing", 0, []step{
			{started{3}, nil},
			{roundOver{errNewcomer}, termAll},
			{exited(0, 1), nil},
			{gangGone{}, []action{join{0, "the round is over: a node has come", false}}},
		}, joining},
		{"no restart in answer to a new round", 3, []step{
			{started{3}, nil},
			{roundOver{errNewcomer}, termAll},
			{asked(exited(0, 0)), nil},
			{asked(exited(1, NoRestart)), nil},
			{gangGone{}, []action{finish{&WorkerError{Root: asked(exited(1, NoRestart)).Exit, MaxRestarts: 3}}}},
		}, done},
		{"a clean stop for a new round is no success", 0, []step{
			{started{3}, nil},
			{roundOver{errNewcomer}, termAll},
			{asked(exited(0, 0)), nil},
			{gangGone{}, []action{join{0, "the round is over: a node has come", false}}},
		}, joining},
		{"success in the moment of a new round", 0, []step{
			{started{3}, nil},
			{exited(0, 0), nil},
			{roundOver{errNewcomer}, termAll},
			{gangGone{}, []action{finish{}}},
		}, done},
		{"interrupt obeyed", 3, []step{
			{started{3}, nil},
			{sigint, []action{stop{syscall.SIGINT}}},
			{asked(exited(0, 0)), nil},
			{gangGone{}, []action{finish{}}},
		}, done},
		{"interrupt with another exit code", 3, []step{
			{started{3}, nil},
			{sigterm, termAll},
			{asked(exited(0, 1)), nil},
			{gangGone{}, []action{finish{&InterruptError{Signal: syscall.SIGTERM}}}},
		}, done},
		{"interrupted twice", 3, []step{
			{started{3}, nil},
			{sigint, []action{stop{syscall.SIGINT}}},
			{sigint, []action{kill{}}},
			{sigint, nil},
			{workerExited{launcher.Exit{Code: 137, Signal: syscall.SIGKILL, Stopped: true}}, nil},
			{gangGone{}, []action{finish{&InterruptError{Signal: syscall.SIGINT, Killed: 1}}}},
		}, done},
		{"interrupt cancels a pending restart", 3, []step{
			{started{3}, nil},
			{exited(0, 3), tell(exited(0, 3), 2)},
			{sigint, nil},
			{gangGone{}, []action{finish{&WorkerError{Root: rank0(3), MaxRestarts: 3}}}},
		}, done},
		{"interrupt cancels a pending round", 3, []step{
			{started{3}, nil},
			{roundOver{errNewcomer}, termAll},
			{sigint, nil},
			{asked(exited(0, 143)), nil},
			{gangGone{}, []action{finish{&InterruptError{Signal: syscall.SIGINT}}}},
		}, done},
		{"interrupt obeyed while stopping for a new round", 3, []step{
			{started{3}, nil},
			{roundOver{errNewcomer}, termAll},
			{sigint, nil},
			{asked(exited(0, 0)), nil},
			{gangGone{}, []action{finish{}}},
		}, done},
		{"two interrupts while joining again", 3, []step{
			{started{3}, nil},
			{roundOver{errNewcomer}, termAll},
			{asked(exited(0, 143)), nil},
			{gangGone{}, []action{join{0, "the round is over: a node has come", false}}},
			{sigint, []action{cancelJoin{}}},
			{sigint, []action{cancelStart{}}},
			{startFailed{errNoRound}, []action{finish{&InterruptError{Signal: syscall.SIGINT}}}},
		}, done},
		{"second interrupt while stopping for a restart", 3, []step{
			{started{3}, nil},
			{exited(0, 3), tell(exited(0, 3), 2)},
			{sigint, nil},
			{sigint, []action{kill{}}},
		}, stopping},
		{"interrupt while joining", 3, []step{
			{sigint, []action{cancelJoin{}}},
			{startFailed{errNoRound}, []action{finish{&InterruptError{Signal: syscall.SIGINT}}}},
		}, done},
		{"interrupt while joining comes too late", 3, []step{
			{sigint, []action{cancelJoin{}}},
			{started{3}, []action{stop{syscall.SIGINT}}},
			{sigint, []action{kill{}}},
		}, stopping},
		{"two interrupts while joining", 3, []step{
			{sigint, []action{cancelJoin{}}},
			{sigterm, []action{cancelStart{}}},
			{sigterm, nil},
			{started{3}, []action{kill{}}},
		}, stopping},
		{"no workers to be had", 3, []step{
			{startFailed{errNoRound}, []action{finish{&StartError{errNoRound}}}},
		}, done},
		{"signals for the workers", 0, []step{
			{signalled{syscall.SIGUSR1}, nil}, // nobody is there yet
			{started{3}, nil},
			{signalled{syscall.SIGUSR1}, []action{forward{syscall.SIGUSR1}}},
			{exited(0, 1), tell(exited(0, 1), 2)},
			{signalled{syscall.SIGUSR1}, nil},
		}, stopping},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := machine{maxRestarts: c.max}
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
