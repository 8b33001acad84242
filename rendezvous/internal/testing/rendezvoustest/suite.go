// Package rendezvoustest holds what every rendezvous.Rendezvous must do, as a test suite. A backend's test is
//
//	func TestConformance(t *testing.T) {
//		rendezvoustest.Run(t, func(t *testing.T, maxRestarts int) rendezvous.Rendezvous { return New(...) })
//	}
//
// The suite joins with one node. What several nodes must agree on is the backend's own test.
package rendezvoustest

import (
	"context"
	"errors"
	"net"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorun/gorun/rendezvous"
)

// Self is the node that joins.
var Self = rendezvous.Node{ID: "self", Host: "127.0.0.1", NodeRank: 0, Nproc: 3, Role: "trainer"}

// timeout is how long a call may take that should return at once.
const timeout = 20 * time.Second

// Run tests the rendezvous that fresh makes, one for every part of the suite, with a budget of so many restarts. Rounds
// must form with Self alone joining, as rank 0, and with a master on this machine.
func Run(t *testing.T, fresh func(t *testing.T, maxRestarts int) rendezvous.Rendezvous) {
	for _, part := range []struct {
		name        string
		maxRestarts int
		test        func(*testing.T, rendezvous.Rendezvous)
	}{
		{"RoundIsWhole", 0, testRoundIsWhole},
		{"NextRoundEndsTheLast", 0, testNextRound},
		{"MasterPortIsHeldUntilStarted", 0, testMasterPort},
		{"CloseEndsTheJob", 0, testClose},
		{"CloseWithoutRound", 0, testCloseWithoutRound},
		{"CancelledJoin", 0, testCancelledJoin},
		{"NodeThatCannotBe", 0, testBadNode},
		{"ConcurrentUse", 0, testConcurrentUse},
		{"FailuresUseTheBudgetUp", 2, testBudget},
		{"FinalFailure", 2, testFinalFailure},
		{"Success", 2, testSuccess},
		{"FirstOfTwoFailuresCounts", 1, testTwoFailures},
		{"StaleReport", 1, testStaleReport},
		{"ReportAfterClose", 1, testReportAfterClose},
		{"ConcurrentReports", 1, testConcurrentReports},
		{"RestartIsFree", 0, testRestart},
	} {
		t.Run(part.name, func(t *testing.T) {
			r := fresh(t, part.maxRestarts)
			t.Cleanup(func() {
				if err := r.Close(context.Background(), nil); err != nil {
					t.Errorf("Close: %v", err)
				}
			})
			part.test(t, r)
		})
	}
}

func join(t *testing.T, r rendezvous.Rendezvous) *rendezvous.Round {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	round, err := r.Join(ctx, Self)
	if err != nil {
		t.Fatalf("Join: %v", err)
	}
	return round
}

func waitOver(t *testing.T, round *rendezvous.Round) {
	t.Helper()
	select {
	case <-round.Done():
	case <-time.After(timeout):
		t.Fatalf("round %d is not over", round.ID)
	}
}

func testRoundIsWhole(t *testing.T, r rendezvous.Rendezvous) {
	round := join(t, r)
	if round.ID < 1 {
		t.Errorf("round number %d, want at least 1", round.ID)
	}
	if round.Self < 0 || round.Self >= round.Size {
		t.Fatalf("self is node %d of %d", round.Self, round.Size)
	}
	if got := round.Node; !reflect.DeepEqual(got, Self) {
		t.Errorf("own node is %+v, want %+v", got, Self)
	}
	if round.Master.Addr == "" || round.Master.Port < 1 || round.Master.Port > 65535 {
		t.Errorf("master is %+v", round.Master)
	}
	select {
	case <-round.Done():
		t.Errorf("a fresh round is over: %v", round.Err())
	default:
		if err := round.Err(); err != nil {
			t.Errorf("Err = %v in a round which is not over", err)
		}
	}
}

func testNextRound(t *testing.T, r rendezvous.Rendezvous) {
	last := join(t, r)
	for range 3 {
		next := join(t, r)
		if next.ID <= last.ID {
			t.Errorf("round %d comes after round %d", next.ID, last.ID)
		}
		waitOver(t, last)
		if !errors.Is(last.Err(), rendezvous.ErrNewRound) {
			t.Errorf("round %d ended with %v, want ErrNewRound", last.ID, last.Err())
		}
		last = next
	}
}

func testMasterPort(t *testing.T, r rendezvous.Rendezvous) {
	round := join(t, r)
	addr := net.JoinHostPort(round.Master.Addr, strconv.Itoa(round.Master.Port))
	for i, when := range []string{"held", "released", "released twice"} {
		if i > 0 {
			round.Started()
		}
		l, err := net.Listen("tcp", addr) // Go sets SO_REUSEADDR
		if err != nil {
			t.Fatalf("while the port is %s, a worker cannot listen on it: %v", when, err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

func testClose(t *testing.T, r rendezvous.Rendezvous) {
	round := join(t, r)
	why := errors.New("rank 3 failed")
	for range 2 {
		if err := r.Close(t.Context(), why); err != nil {
			t.Fatalf("Close: %v", err)
		}
		why = errors.New("too late to matter")
	}
	waitOver(t, round)
	if err := round.Err(); !errors.Is(err, rendezvous.ErrClosed) {
		t.Errorf("round ended with %v, want ErrClosed", err)
	}
	round.Started() // harmless afterwards
	if got, err := r.Join(t.Context(), Self); !errors.Is(err, rendezvous.ErrClosed) || got != nil {
		t.Errorf("Join of a closed job = %v, %v, want ErrClosed", got, err)
	}
}

func testCloseWithoutRound(t *testing.T, r rendezvous.Rendezvous) {
	if err := r.Close(t.Context(), nil); err != nil {
		t.Fatalf("Close: %v", err)
	}
	if _, err := r.Join(t.Context(), Self); !errors.Is(err, rendezvous.ErrClosed) {
		t.Errorf("Join = %v, want ErrClosed", err)
	}
}

func testCancelledJoin(t *testing.T, r rendezvous.Rendezvous) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if round, err := r.Join(ctx, Self); !errors.Is(err, context.Canceled) || round != nil {
		t.Errorf("Join = %v, %v, want context.Canceled", round, err)
	}
	join(t, r) // the job goes on
}

// testBadNode: a node that no job has room for is refused at once, as a mistake. The job goes on.
func testBadNode(t *testing.T, r rendezvous.Rendezvous) {
	for what, change := range map[string]func(*rendezvous.Node){
		"no workers":       func(n *rendezvous.Node) { n.Nproc = 0 },
		"too many workers": func(n *rendezvous.Node) { n.Nproc = rendezvous.WorldLimit + 1 },
		"an ID of 2 lines": func(n *rendezvous.Node) { n.ID = "a\nb" },
		"a long role":      func(n *rendezvous.Node) { n.Role = strings.Repeat("x", 1<<20) },
		"no text":          func(n *rendezvous.Node) { n.Host = "\xff" },
		"escape sequences": func(n *rendezvous.Node) { n.Addr = "\x1b[2J" },
	} {
		bad := Self
		change(&bad)
		round, err := r.Join(t.Context(), bad)
		if _, misuse := errors.AsType[*rendezvous.MisuseError](err); !misuse || round != nil {
			t.Errorf("%s: Join = %v, %v, want a *MisuseError", what, round, err)
		}
	}
	join(t, r)
}

// testConcurrentUse finds what the race detector can find.
func testConcurrentUse(t *testing.T, r rendezvous.Rendezvous) {
	var all sync.WaitGroup
	seen := make(chan int, 8)
	for range cap(seen) {
		all.Go(func() {
			round, err := r.Join(t.Context(), Self)
			if err != nil {
				if !errors.Is(err, rendezvous.ErrClosed) {
					t.Errorf("Join: %v", err)
				}
				return
			}
			seen <- round.ID
			round.Started()
			<-round.Done()
			if round.Err() == nil {
				t.Errorf("round %d is over without a reason", round.ID)
			}
		})
	}
	var first int
	select {
	case first = <-seen:
	case <-time.After(timeout):
		t.Fatal("nobody has joined")
	}
	if err := r.Close(t.Context(), nil); err != nil {
		t.Errorf("Close: %v", err)
	}
	all.Wait()
	close(seen)
	ids := map[int]bool{first: true}
	for id := range seen {
		if ids[id] {
			t.Errorf("two rounds have number %d", id)
		}
		ids[id] = true
	}
}
