package agent

import (
	"syscall"
	"testing"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/rendezvous"
)

// TestStep: whole stories without an interrupt.
func TestStep(t *testing.T) {
	tellStories(t, []story{
		{"success", []step{
			{started{3}, nil},
			{exited(1, 0), nil},
			{exited(0, 0), nil},
			{gangGone{}, success},
			{succeeded, ends(nil)},
			{sigint, nil},
		}, done},
		{"success once the others have ended", []step{
			{started{3}, nil},
			{gangGone{}, success},
			{reported{nil}, []action{barrier{}}},
			{signalled{syscall.SIGUSR1}, nil},
			{succeeded, ends(nil)},
		}, done},
		{"the others take too long", []step{
			{started{3}, nil},
			{gangGone{}, success},
			{reported{nil}, []action{barrier{}}},
			{barrierOver{}, ends(nil)},
		}, done},
		{"the others fail meanwhile", []step{
			{started{3}, nil},
			{gangGone{}, success},
			{reported{nil}, []action{barrier{}}},
			{newRound, again},
			{started{3}, nil},
			{gangGone{}, success},
			{roundOver{closedBy(far)}, ends(&WorkerError{Root: far.Death, Code: 4, Elsewhere: far})},
		}, done},
		{"a success that nobody hears of", []step{
			{started{3}, nil},
			{gangGone{}, success},
			{reported{errAway}, ends(nil)},
		}, done},
		{"failure without restarts", []step{
			{started{3}, nil},
			{exited(0, 3), tell(exited(0, 3), 2)},
			{own(3), nil},
			{exited(2, 1), nil},
			{asked(exited(1, 143)), nil},
			{gangGone{}, ends(&WorkerError{Root: rank0(3), Code: 3, Others: []death.Death{exited(2, 1).Death}, Stopped: []death.Death{asked(exited(1, 143)).Death}})},
		}, done},
		{"failure, restart, success", []step{
			{started{3}, nil},
			{exited(0, 3), tell(exited(0, 3), 2)},
			{newRound, nil},
			{gangGone{}, again},
			{started{3}, nil},
			{exited(0, 0), nil},
			{gangGone{}, success},
			{succeeded, ends(nil)},
		}, done},
		{"the rendezvous takes longer than the gang", []step{
			{started{3}, nil},
			{exited(0, 3), tell(exited(0, 3), 2)},
			{gangGone{}, nil},
			{reported{nil}, nil},
			{newRound, again},
		}, joining},
		{"a failure that nobody hears of", []step{
			{started{3}, nil},
			{exited(0, 3), tell(exited(0, 3), 2)},
			{gangGone{}, nil},
			{reported{errAway}, ends(&WorkerError{Root: rank0(3), Code: 3})},
		}, done},
		{"nobody hears of a failure, but of another", []step{
			{started{3}, nil},
			{exited(0, 3), tell(exited(0, 3), 2)},
			{reported{errAway}, nil},
			{newRound, nil},
			{gangGone{}, again},
			{started{3}, nil},
			{exited(0, 3), tell(exited(0, 3), 2)},
			{gangGone{}, nil},
		}, waiting},
		{"nobody is told at once what the summary says in a moment", []step{
			{started{1}, nil},
			{exited(0, NoRestart), tell(exited(0, NoRestart), 0)[:2]},
			{own(NoRestart), nil},
			{gangGone{}, ends(&WorkerError{Root: rank0(NoRestart), Code: NoRestart})},
		}, done},
		{"the job goes on without a newcomer whose worker asks for no restart, in its error file", []step{
			{started{3}, nil},
			{exited(0, 2), tell(exited(0, 2), 2)},
			{roundOver{&rendezvous.NewRoundError{Failure: &rendezvous.Failure{Death: death.Death{Rank: 0, ExitCode: 2}, Final: true}}}, nil},
			{gangGone{}, ends(&WorkerError{Root: rank0(2), Code: 2})},
		}, done},
		{"the job goes on without another newcomer", []step{
			{started{3}, nil},
			{exited(0, 1), tell(exited(0, 1), 2)},
			{roundOver{&rendezvous.NewRoundError{Failure: &rendezvous.Failure{Death: death.Death{Rank: 7, ExitCode: 2}, Final: true}}}, nil},
			{gangGone{}, again},
		}, joining},
		{"a lone worker that is started again", []step{
			{started{1}, nil},
			{exited(0, 3), tell(exited(0, 3), 0)[:2]},
			{gangGone{}, nil},
			{newRound, []action{announce{rank0(3), 0}, join{}}},
			{started{1}, nil},
			{exited(0, 3), tell(exited(0, 3), 0)[:2]},
		}, stopping},
		{"only those that still run are others", []step{
			{started{3}, nil},
			{exited(2, 0), nil},
			{exited(0, 3), tell(exited(0, 3), 1)},
		}, stopping},
		{"the first of two crashes", []step{
			{started{3}, nil},
			{crash, tell(crash, 2)},
			{workerExited{death.Death{ExitCode: -int(syscall.SIGSEGV)}}, nil},
			{roundOver{closedBy(failedAt("here", crash.Death))}, nil},
			{gangGone{}, ends(&WorkerError{Root: crash.Death, Code: 137, Others: []death.Death{{ExitCode: -int(syscall.SIGSEGV)}}})},
		}, done},
		{"another worker asks for no restart", []step{
			{started{3}, nil},
			{exited(0, 1), tell(exited(0, 1), 2)},
			{newRound, nil},
			{asked(exited(1, NoRestart)), nil},
			{gangGone{}, ends(&WorkerError{Root: rank0(1), Code: 1, Stopped: []death.Death{asked(exited(1, NoRestart)).Death}})},
		}, done},
		{"another node's failure ends the job", []step{
			{started{3}, nil},
			{roundOver{closedBy(far)}, termAll},
			{exited(1, 1), nil},
			{asked(exited(0, 143)), nil},
			{gangGone{}, ends(&WorkerError{Root: far.Death, Code: 4, Elsewhere: far,
				Others: []death.Death{exited(1, 1).Death}, Stopped: []death.Death{asked(exited(0, 143)).Death}})},
		}, done},
		{"another node's failure came before this one's", []step{
			{started{3}, nil},
			{exited(0, 1), tell(exited(0, 1), 2)},
			{roundOver{closedBy(far)}, nil},
			{gangGone{}, ends(&WorkerError{Root: far.Death, Code: 4, Elsewhere: far, Others: []death.Death{rank0(1)}})},
		}, done},
		{"the job ends, and no worker is to blame", []step{
			{started{3}, nil},
			{roundOver{reasoned}, termAll},
			{asked(exited(0, 143)), nil},
			{gangGone{}, ends(reasoned)},
		}, done},
		{"another round", []step{
			{started{3}, nil},
			{newRound, termAll},
			{newRound, nil},
			{asked(exited(0, 143)), nil},
			{gangGone{}, again},
		}, joining},
		{"a failure after the round's end is not reported", []step{
			{started{3}, nil},
			{newRound, termAll},
			{exited(0, 1), nil},
			{gangGone{}, again},
		}, joining},
		{"no restart in answer to a new round", []step{
			{started{3}, nil},
			{newRound, termAll},
			{asked(exited(0, 0)), nil},
			{asked(exited(1, NoRestart)), nil},
			{gangGone{}, ends(&WorkerError{Root: asked(exited(1, NoRestart)).Death, Code: NoRestart})},
		}, done},
		{"success in the moment of a new round is none", []step{
			{started{3}, nil},
			{exited(0, 0), nil},
			{newRound, termAll},
			{gangGone{}, again},
		}, joining},
		{"no workers to be had", []step{
			{startFailed{errNoRound}, ends(&StartError{errNoRound})},
		}, done},
		{"the job has succeeded without this node", []step{
			{startFailed(succeeded), ends(nil)},
		}, done},
		{"the job has failed between two rounds of this node", []step{
			{started{3}, nil},
			{exited(0, 3), tell(exited(0, 3), 2)},
			{newRound, nil},
			{gangGone{}, again},
			{startFailed{closedBy(far)}, ends(&WorkerError{Root: far.Death, Code: 4, Elsewhere: far})},
		}, done},
		{"signals for the workers", []step{
			{signalled{syscall.SIGUSR1}, nil}, // nobody is there yet
			{started{3}, nil},
			{signalled{syscall.SIGUSR1}, []action{forward{syscall.SIGUSR1}}},
			{exited(0, 1), tell(exited(0, 1), 2)},
			{signalled{syscall.SIGUSR1}, nil},
		}, stopping},
	})
}
