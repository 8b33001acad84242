package agent

import (
	"syscall"
	"testing"

	"github.com/gorun/gorun/env/death"
)

// TestReplaceStep: whole stories of workers that may outlive their round.
func TestReplaceStep(t *testing.T) {
	revokeAll := []action{revoke{syscall.SIGTERM}}
	failed, final := rank0(3), rank0(NoRestart)
	revokes := revocation{death.Death{Rank: 0, Pid: 100, ExitCode: 1, Cause: death.Revoked, Why: "rank 1 has left"}}
	crash := exited(1, 137)
	crash.ExitCode = -int(syscall.SIGKILL)
	revokesAgain := revocation{death.Death{Rank: 2, ExitCode: 1, Cause: death.Revoked, Why: "rank 0 has left"}}
	revokedByIt := func(others int) []action {
		return []action{revoke{syscall.SIGTERM}, report{&revokes.Death}, announce{revokes.Death, others}}
	}
	replaceIt := []action{revoke{syscall.SIGTERM}, report{&failed}, announce{failed, 2}}
	tellStoriesOf(t, stateMachine{replace: true}, []story{
		{"one is replaced", []step{
			{started{3}, nil},
			{exited(0, 3), replaceIt},
			{newRound, nil},
			{revoked{}, again},
			{started{3}, nil},
			{gangGone{}, success},
			{succeeded, ends(nil)},
		}, done},
		{"no restart is left, and others take long to end", []step{
			{started{3}, nil},
			{exited(0, 3), replaceIt},
			{own(3), termAll},
			{revoked{}, nil},
			{asked(exited(1, 143)), nil},
			{asked(exited(2, 143)), nil},
			{gangGone{}, ends(&WorkerError{Root: rank0(3), Code: 3, Stopped: []death.Death{asked(exited(1, 143)).Death, asked(exited(2, 143)).Death}})},
		}, done},
		{"no restart is left, and all that were to end have ended", []step{
			{started{3}, nil},
			{exited(0, 3), replaceIt},
			{revoked{}, nil},
			{own(3), termAll},
			{asked(exited(1, 143)), nil},
			{asked(exited(2, 143)), nil},
			{gangGone{}, ends(&WorkerError{Root: rank0(3), Code: 3, Stopped: []death.Death{asked(exited(1, 143)).Death, asked(exited(2, 143)).Death}})},
		}, done},
		{"the job ends elsewhere", []step{
			{started{3}, nil},
			{succeeded, termAll},
			{gangGone{}, ends(nil)},
		}, done},
		{"a worker asks for no restart", []step{
			{started{3}, nil},
			{exited(0, NoRestart), append(termAll, report{&final}, announce{final, 2})},
			{own(NoRestart), nil},
			{gangGone{}, ends(&WorkerError{Root: rank0(NoRestart), Code: NoRestart})},
		}, done},
		{"no other round forms", []step{
			{started{3}, nil},
			{newRound, revokeAll},
			{revoked{}, again},
			{startFailed{reasoned}, termAll},
			{asked(exited(0, 143)), nil},
			{gangGone{}, ends(reasoned)},
		}, done},
		{"a survivor dies while the next round forms", []step{
			{started{3}, nil},
			{newRound, revokeAll},
			{revoked{}, again},
			{exited(1, 5), nil},
			{started{3}, nil},
		}, running},
		{"all survivors die while the next round forms", []step{
			{started{2}, nil},
			{newRound, revokeAll},
			{revoked{}, again},
			{exited(0, 5), nil},
			{exited(1, 5), nil},
			{gangGone{}, nil},
			{started{2}, nil},
		}, running},
		{"a survivor asks for no restart while the next round forms", []step{
			{started{3}, nil},
			{newRound, revokeAll},
			{revoked{}, again},
			{exited(0, NoRestart), []action{cancelJoin{}, stop{syscall.SIGTERM}}},
			{asked(exited(1, 143)), nil},
			{startFailed{errNoRound}, nil},
			{gangGone{}, ends(&WorkerError{Root: final, Code: NoRestart, Stopped: []death.Death{asked(exited(1, 143)).Death}})},
		}, done},
		{"a survivor asks for no restart while the others are started", []step{
			{started{3}, nil},
			{newRound, revokeAll},
			{revoked{}, again},
			{exited(0, NoRestart), []action{cancelJoin{}, stop{syscall.SIGTERM}}},
			{started{3}, append(termAll, report{&final}, announce{final, 3})},
			{own(NoRestart), nil},
			{asked(exited(1, 143)), nil},
			{gangGone{}, ends(&WorkerError{Root: final, Code: NoRestart, Stopped: []death.Death{asked(exited(1, 143)).Death}})},
		}, done},
		{"a rank revokes the round, since another one has exited 0, and all are in the next one", []step{
			{started{3}, nil},
			{exited(1, 0), nil},
			{revokes, revokedByIt(1)},
			{revokesAgain, nil},
			{revoked{}, nil},
			{newRound, again},
			{started{3}, nil},
			{gangGone{}, success},
			{succeeded, ends(nil)},
		}, done},
		{"a rank revokes the round, and no restart is left", []step{
			{started{3}, nil},
			{exited(1, 0), nil},
			{revokes, revokedByIt(1)},
			{revoked{}, nil},
			{own(1), termAll},
			{asked(exited(2, 143)), nil},
			{asked(exited(0, 143)), nil},
			{gangGone{}, ends(&WorkerError{Root: revokes.Death, Code: 1, Exited: []death.Death{exited(1, 0).Death}, Stopped: []death.Death{asked(exited(2, 143)).Death}})},
		}, done},
		{"a rank revokes the round, and another one turns out to have crashed", []step{
			{started{3}, nil},
			{revokes, revokedByIt(2)},
			{crash, nil},
			{own(1), termAll},
			{exited(0, 1), nil},
			{asked(exited(2, 143)), nil},
			{gangGone{}, ends(&WorkerError{Root: revokes.Death, Code: 1, Others: []death.Death{crash.Death}, Stopped: []death.Death{asked(exited(2, 143)).Death}})},
		}, done},
		{"an interrupt while the next round forms", []step{
			{started{3}, nil},
			{newRound, revokeAll},
			{revoked{}, again},
			{sigint, []action{cancelJoin{}, stop{syscall.SIGINT}, answer{sig: syscall.SIGINT, left: 3, kills: false}}},
			{startFailed{errNoRound}, nil},
			{asked(exited(0, 130)), nil},
			{gangGone{}, ends(&InterruptError{Signal: syscall.SIGINT})},
		}, done},
	})
}

// TestRevocationIsTheLastFailure: the next round begins because of a worker that has revoked its round and has not ended.
func TestRevocationIsTheLastFailure(t *testing.T) {
	revokes := revocation{death.Death{Rank: 1, ExitCode: 1, Cause: death.Revoked, Why: "rank 0 has left"}}
	m := stateMachine{replace: true}
	for _, e := range []event{started{3}, exited(0, 0), revokes, revoked{}, newRound} {
		m.Step(e)
	}
	f := m.lastFailure()
	if f == nil || f.reported.Rank != 1 || f.Root.Why != revokes.Why || len(f.Exited) != 1 || m.state != joining {
		t.Fatalf("%s: %+v", m.state, f)
	}
	crash := exited(2, 137)
	crash.ExitCode = -int(syscall.SIGKILL)
	m.Step(crash)
	if f := m.lastFailure(); f.reported.Rank != 1 || f.Root.Rank != 1 || len(f.Others) != 1 {
		t.Errorf("%+v", f)
	}
}
