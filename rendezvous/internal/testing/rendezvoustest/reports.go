package rendezvoustest

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/rendezvous"
)

// failed is the failure of a worker of Self.
func failed(rank int) *rendezvous.Failure {
	return &rendezvous.Failure{
		Death: death.Death{Host: Self.Host, Rank: rank, LocalRank: rank, Pid: 4242 + rank, ExitCode: -9, At: time.Date(2026, 1, 2, 15, 4, 5, 678, time.UTC)}, Node: Self.ID, Text: "two\nlines of text <&>",
	}
}

func report(t *testing.T, r rendezvous.Rendezvous, round *rendezvous.Round, failure *rendezvous.Failure) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	if err := r.Report(ctx, round, failure); err != nil {
		t.Fatalf("Report: %v", err)
	}
}

// wantNext wants a round to be over for a new one, and the new one to follow that failure.
func wantNext(t *testing.T, r rendezvous.Rendezvous, last *rendezvous.Round, why *rendezvous.Failure, restart string) *rendezvous.Round {
	t.Helper()
	waitOver(t, last)
	over, ok := errors.AsType[*rendezvous.NewRoundError](last.Err())
	if !ok || !errors.Is(over, rendezvous.ErrNewRound) {
		t.Fatalf("round %d ended with %v, want ErrNewRound", last.ID, last.Err())
	}
	if !reflect.DeepEqual(over.Failure, why) || over.Gone != nil || !strings.Contains(over.Why, why.String()) {
		t.Errorf("round %d ended with %+v of %+v, want %+v", last.ID, over, over.Failure, why)
	}
	next := join(t, r)
	if next.Restarts != last.Restarts+1 {
		t.Errorf("round %d has %d restarts before it, want %d", next.ID, next.Restarts, last.Restarts+1)
	}
	if !strings.Contains(next.Because(), why.String()) || !strings.Contains(next.Because(), restart) {
		t.Errorf("round %d is there for %q, want %q and %q in it", next.ID, next.Because(), why, restart)
	}
	return next
}

// wantClosed wants a round to be over for good, and nobody to join again.
func wantClosed(t *testing.T, r rendezvous.Rendezvous, round *rendezvous.Round, want rendezvous.Outcome) {
	t.Helper()
	waitOver(t, round)
	_, joinErr := r.Join(t.Context(), Self)
	for what, err := range map[string]error{"the round ended": round.Err(), "Join failed": joinErr} {
		closed, ok := errors.AsType[*rendezvous.ClosedError](err)
		if !ok {
			t.Errorf("%s with %v, want a *ClosedError", what, err)
		} else if !reflect.DeepEqual(closed.Outcome, want) {
			t.Errorf("%s with %+v (%+v), want %+v (%+v)", what, closed.Outcome, closed.Outcome.Failure, want, want.Failure)
		}
	}
}

func testBudget(t *testing.T, r rendezvous.Rendezvous) {
	round := join(t, r)
	if round.Restarts != 0 || round.Why != "" {
		t.Errorf("the first round has %d restarts before it, and is there for %q", round.Restarts, round.Why)
	}
	for i, restart := range []string{"restart 1 of 2", "restart 2 of 2"} {
		report(t, r, round, failed(i))
		round = wantNext(t, r, round, failed(i), restart)
	}
	report(t, r, round, failed(2))
	wantClosed(t, r, round, rendezvous.Outcome{Code: 137, Failure: failed(2)})
}

func testFinalFailure(t *testing.T, r rendezvous.Rendezvous) {
	round, final := join(t, r), failed(1)
	final.Final = true
	report(t, r, round, final)
	wantClosed(t, r, round, rendezvous.Outcome{Code: 137, Failure: final})
}

func testSuccess(t *testing.T, r rendezvous.Rendezvous) {
	round := join(t, r)
	report(t, r, round, nil)
	wantClosed(t, r, round, rendezvous.Outcome{})
}

func testTwoFailures(t *testing.T, r rendezvous.Rendezvous) {
	round, second := join(t, r), failed(1)
	second.Final = true
	report(t, r, round, failed(0))
	report(t, r, round, second)
	round = wantNext(t, r, round, failed(0), "restart 1 of 1")
	report(t, r, round, failed(2))
	report(t, r, round, nil)
	wantClosed(t, r, round, rendezvous.Outcome{Code: 137, Failure: failed(2)})
}

// testStaleReport: what is reported late of a round counts for no other.
func testStaleReport(t *testing.T, r rendezvous.Rendezvous) {
	first := join(t, r)
	second := join(t, r)
	final := failed(0)
	final.Final = true
	for _, late := range []*rendezvous.Failure{failed(0), final, nil} {
		report(t, r, first, late)
	}
	if err := second.Err(); err != nil {
		t.Fatalf("a report of round %d ended round %d: %v", first.ID, second.ID, err)
	}
	if second.Restarts != 0 || second.Why == "" {
		t.Errorf("round %d has %d restarts before it, and is there for %q", second.ID, second.Restarts, second.Why)
	}
	report(t, r, second, failed(1))
	third := wantNext(t, r, second, failed(1), "restart 1 of 1")
	if fourth := join(t, r); fourth.Because() == third.Because() || fourth.Restarts != third.Restarts {
		t.Errorf("round %d has %d restarts before it, and is there for %q, like round %d", fourth.ID, fourth.Restarts, fourth.Because(), third.ID)
	}
}

func testReportAfterClose(t *testing.T, r rendezvous.Rendezvous) {
	round := join(t, r)
	if err := r.Close(t.Context(), errors.New("enough")); err != nil {
		t.Fatalf("Close: %v", err)
	}
	was := round.Err()
	for _, late := range []*rendezvous.Failure{failed(0), nil} {
		_ = r.Report(t.Context(), round, late) // whether it fails is up to the backend
	}
	if err := round.Err(); err.Error() != was.Error() {
		t.Errorf("the round had ended with %v, and now with %v", was, err)
	}
	if _, err := r.Join(t.Context(), Self); !errors.Is(err, rendezvous.ErrClosed) {
		t.Errorf("Join = %v, want ErrClosed", err)
	}
}

// testConcurrentReports: one of them counts, and costs one restart.
func testConcurrentReports(t *testing.T, r rendezvous.Rendezvous) {
	round := join(t, r)
	var all sync.WaitGroup
	for rank := range 8 {
		all.Go(func() {
			if err := r.Report(t.Context(), round, failed(rank)); err != nil {
				t.Errorf("Report: %v", err)
			}
		})
	}
	all.Wait()
	waitOver(t, round)
	next := join(t, r)
	if next.Restarts != 1 {
		t.Errorf("%d restarts were used, want 1", next.Restarts)
	}
	report(t, r, next, failed(0))
	wantClosed(t, r, next, rendezvous.Outcome{Code: 137, Failure: failed(0)})
}

// testRestart: another round follows if somebody wants it, even without a budget.
func testRestart(t *testing.T, r rendezvous.Rendezvous) {
	round := join(t, r)
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	if err := r.Restart(ctx, round, "gorun restart"); err != nil {
		t.Fatal(err)
	}
	waitOver(t, round)
	if over, ok := errors.AsType[*rendezvous.NewRoundError](round.Err()); !ok || over.Why != "gorun restart" || over.Failure != nil {
		t.Fatalf("round %d ended with %v", round.ID, round.Err())
	}
	next := join(t, r)
	if next.Restarts != 0 || next.Why != "gorun restart" {
		t.Errorf("the next round has used %d restarts, and is there for %q", next.Restarts, next.Why)
	}
	if err := r.Restart(ctx, round, "gorun restart"); err != nil { // which is over
		t.Error(err)
	}
	select {
	case <-next.Done():
		t.Errorf("the next round is over because somebody wanted it: %v", next.Err())
	case <-time.After(50 * time.Millisecond):
	}
}
