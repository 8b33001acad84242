package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorun/gorun/agent/internal/workergroup"
	"github.com/gorun/gorun/env/testing/testkit"
	"github.com/gorun/gorun/rendezvous"
)

// unreachable is a rendezvous that records nothing.
type unreachable struct{ rendezvous.Rendezvous }

func (unreachable) Report(ctx context.Context, _ *rendezvous.Round, _ *rendezvous.Failure) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestUnreachableRendezvous: what nobody can be told ends the job here as it would end it on one node.
func TestUnreachableRendezvous(t *testing.T) {
	for _, code := range []int{0, 3} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newTestbed(t, 3, []script{{after: time.Minute, code: code}})
				s.config.Rendezvous = unreachable{s.config.Rendezvous}
				s.config.Logger = testkit.LogLines(s, slog.LevelInfo)
				if got := exitOfJob(Run(t.Context(), s.config)); got != code {
					t.Errorf("exit code %d, want %d", got, code)
				}
				want, how := []string{"0s start", "0s port released"}, ""
				if code != 0 {
					want, how = append(want, "1m0s stop terminated"), `: failed="rank 0 (local rank 0, pid 100): exit code 3"`
				}
				s.wantStory(append(want, "1m1s [WARN]  waiting: this node has not yet been able to report how its workers ended; gives up in 10m0s"+how,
					`11m0s [WARN]  cannot report to the rendezvous how the workers ended: error="context deadline exceeded"`)...)
			})
		})
	}
}

// away is a rendezvous that cannot be used for some minutes, once a round has formed.
type away struct{ rendezvous.Rendezvous }

func (a away) Report(ctx context.Context, round *rendezvous.Round, failure *rendezvous.Failure) error {
	select {
	case <-time.After(5 * time.Minute):
		return a.Rendezvous.Report(ctx, round, failure)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestReportsArePatient: a failure while the rendezvous is away ends no node that has restarts left.
func TestReportsArePatient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestbed(t, 1, []script{{after: time.Minute, code: 3}}, []script{{after: time.Minute}})
		s.config.Rendezvous = away{s.config.Rendezvous}
		if err := Run(t.Context(), s.config); err != nil {
			t.Errorf("Run: %v", err)
		}
		s.wantStory("0s start", "0s port released", "1m0s stop terminated", "6m0s start", "6m0s port released")
	})
}

// late is a rendezvous whose answer to a report comes after its consequence.
type late struct {
	rendezvous.Rendezvous
	reporting bool
	t         *testing.T
}

func (l *late) Report(ctx context.Context, round *rendezvous.Round, failure *rendezvous.Failure) error {
	l.reporting = true
	err := l.Rendezvous.Report(ctx, round, failure)
	<-ctx.Done()
	time.Sleep(time.Second)
	l.reporting = false
	return errors.Join(err, ctx.Err())
}

func (l *late) Close(ctx context.Context, why error) error {
	if l.reporting {
		l.t.Error("closed while a report is under way")
	}
	return l.Rendezvous.Close(ctx, why)
}

// TestLateAnswer: an answer is of no interest once the round is over, and the last one is waited for.
func TestLateAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestbed(t, 1, []script{{after: time.Second, code: 3}}, []script{{after: time.Hour}})
		s.config.Rendezvous = &late{Rendezvous: s.config.Rendezvous, t: t}
		s.config.Logger = testkit.LogLines(s, slog.LevelInfo)
		if err := Run(t.Context(), s.config); err != nil {
			t.Errorf("Run: %v", err)
		}
		s.wantStory("0s start", "0s port released", "1s stop terminated",
			"1s [ERROR] failed (exitcode: 3) local_rank: 0 (pid: 100) of binary: prog: rank=0 host=here",
			"1s [WARN]  [default] Worker group FAILED. 1/1 attempts left; will restart worker group: rank 0 on here: exit code 3; restart 1 of 1",
			"1s start", "1s port released")
	})
}

// TestEndAndAnswer: when the round is over because of a report, the answer to it is no news.
func TestEndAndAnswer(t *testing.T) {
	for range 50 { // a select chooses
		round, end := rendezvous.Begin(rendezvous.Round{}, nil)
		answer := make(chan error, 1)
		if answer <- end(rendezvous.ErrNewRound); round.Err() == nil {
			t.Fatal("the round is not over")
		}
		l := loop{group: workergroup.New(workergroup.Config{}), round: round, over: round.Done(), reported: answer}
		if e := l.next(); e != newRound || l.over != nil {
			t.Fatalf("%T%v, want the end of the round, once", e, e)
		}
	}
}
