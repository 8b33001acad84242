package comm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorun/gorun/env"
)

// wantError checks that the result of a worker is an error that says something, and its exit code.
func wantError(t *testing.T, w *testWorker, r result, want string, code int) {
	t.Helper()
	if !strings.Contains(r.Error, want) || r.Code != code || r.Took > soon {
		t.Errorf("rank %d, after %v: %s: %q (exit code %d), want %q (%d)", w.rank, r.Took, r.Command, r.Error, r.Code, want, code)
	}
}

// TestRejoinTwiceAtOnce: one call says so, and the other one succeeds.
func TestRejoinTwiceAtOnce(t *testing.T) {
	a := newTestAgent(t, "shm", 2)
	a.join()
	a.lose(1)
	w := a.workers[0]
	w.do("go", "rejoin")
	w.do("go", "rejoin")
	wantError(t, w, w.result(), "comm: Rejoin: another call of it is under way", 2)
	a.next(2)
	a.workers[1].join()
	if r := w.result(); r.Error != "" {
		t.Error(r.Error)
	}
	a.workers[1].result()
	a.all("check")
}

// TestRejoinWithoutNeed: nothing has failed. Rejoin asks the agent to end the round, the others learn who has, and nobody takes the end of
// that rank's world for the cause. All join the next round when there is one.
func TestRejoinWithoutNeed(t *testing.T) {
	t.Parallel()
	a := newTestAgent(t, "shm", 3)
	a.join()
	for _, r := range []int{1, 2} {
		a.workers[r].do("run", "Barrier")
	}
	w := a.workers[0]
	const noRound = "comm: Rejoin: there is no round after round 1 yet: the agent has not said that round 1 is over: context deadline exceeded"
	w.do("rejoin", "300") // gives up before it has to end the round
	wantError(t, w, w.result(), noRound, 1)
	w.do("rejoin", "3000")
	why := w.revokes(1)
	if why != "it has called comm.Rejoin, and no call of it has failed" {
		t.Errorf("rank 0 revokes the round: %s", why)
	}
	wantError(t, w, w.result(), noRound, 1)
	a.overBecause("rank 0 on here: " + why)
	for _, r := range []int{1, 2} {
		w := a.workers[r]
		wantError(t, w, w.result(), "gorun is forming another round: round 1 is over: rank 0 on here: it has called comm.Rejoin", 1)
	}
	a.next(3)
	a.join()
}

// TestRejoinAfterARankHasLeft: a rank has closed its world, or has ended, and another one needs it. That one says so when it ends the
// round, in the error file, too.
func TestRejoinAfterARankHasLeft(t *testing.T) {
	onNetworks(t, []string{"shm", "tcp"}, func(t *testing.T, network string) {
		file := filepath.Join(t.TempDir(), "error.json") // of the first round
		a := newTestAgent(t, network, 3, "TORCHELASTIC_ERROR_FILE="+file)
		a.join()
		for _, leave := range []string{"close", "exit"} {
			a.workers[1].do(leave, "0")
			if leave == "close" {
				a.workers[1].result()
			}
			w := a.workers[0]
			w.do("run", "Barrier")
			wantError(t, w, w.result(), "rank 1 (pid ", 1)
			w.do("rejoin")
			if why := w.revokes(a.round); !strings.HasPrefix(why, "Barrier #") || !strings.Contains(why, ": rank 1 (pid ") {
				t.Errorf("rank 0 revokes round %d: %s", a.round, why)
			}
			if leave == "exit" {
				a.kill(1)
				a.died = nil
			} else if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), `"failed_peer":{"rank":1,"finder":0}`) {
				t.Errorf("the error file: %s, %v", text, err)
			}
			a.overBecause("rank 0 on here: " + leave)
			a.next(3)
			w.entered(a.round)
			for rank, w := range a.workers {
				if rank != 0 {
					w.join()
				}
			}
			for rank, r := range a.results() {
				if r.Error != "" {
					t.Fatalf("rank %d: %s", rank, r.Error)
				}
			}
			a.all("check")
		}
	})
}

// TestRejoinOfSome: the others never call it, call Init, or have ended. Rejoin names them, and succeeds in a later round.
func TestRejoinOfSome(t *testing.T) {
	for name, c := range map[string]struct {
		odd     int // one of the others
		others  func(w *testWorker)
		want    string
		another string // what the others' call says
	}{
		"never called":         {2, nil, "2 of 3 ranks came to the store at ", ""},
		"calls Init":           {2, func(w *testWorker) { w.do("init") }, "2 of 3 ranks came to the store at ", "rank 1 (pid "},
		"exits":                {2, func(w *testWorker) { w.do("exit", "3") }, "2 of 3 ranks came to the store at ", ""},
		"never called: rank 0": {0, nil, "rank 0, which serves the store, has not come: ", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newTestAgent(t, "tcp", 3, "COMM_TEST_TIMEOUT=5s")
			a.join()
			a.lose(1)
			a.next(3)
			odd, come := a.workers[c.odd], []int{2 - c.odd, 1}
			if c.others != nil {
				c.others(odd)
			}
			for _, r := range come {
				a.workers[r].join()
			}
			for _, r := range come {
				wantError(t, a.workers[r], a.workers[r].result(), c.want, 2)
			}
			if c.another != "" {
				wantError(t, odd, odd.result(), c.another, 1)
			}
			for _, r := range come {
				w := a.workers[r]
				w.do("rejoin", "1000")
				if m := w.says(func(m env.Message) bool { return m.Revoke != "" }); !slices.Equal(m.Missing, []int{c.odd}) {
					t.Errorf("rank %d says %+v, want that rank %d is missing", r, m, c.odd)
				}
				w.result()
			}
			a.lose(c.odd)
			a.next(3)
			a.join()
		})
	}
}

// TestRejoinAfterClose: the world has been closed in good order before, and after the end of the round.
func TestRejoinAfterClose(t *testing.T) {
	a := newTestAgent(t, "shm", 3)
	a.join()
	a.all("close")
	a.lose(1)
	a.next(3)
	a.join()
	a.lose(1)
	a.all("close")
	a.next(3)
	a.join()
}

// TestInitsBesideTheRounds: a world by another method does that of the round no harm, and outlives it. All worlds of the round end with it.
func TestInitsBesideTheRounds(t *testing.T) {
	a := newTestAgent(t, "shm", 3)
	a.join()
	a.all("init", "file://"+filepath.Join(t.TempDir(), "meet"))
	a.begun("go", "run", "Recv from any")
	time.Sleep(100 * time.Millisecond) // so that it is under way in the first world; without that it would be in the second
	a.all("init")
	a.all("check")
	a.begun("run", "Recv from any")
	a.over()
	for range 2 {
		for rank, r := range a.results() {
			wantError(t, a.workers[rank], r, "gorun is forming another round", 1)
		}
	}
	a.next(3)
	a.join()
	a.begun("use other", "Barrier")
	for rank, r := range a.results() {
		if r.Error != "" {
			t.Errorf("rank %d: the world of the file: %s", rank, r.Error)
		}
	}
}

// TestAWorkerThatForks: another process with the environment of a worker is turned away at once, and the worker goes on.
func TestAWorkerThatForks(t *testing.T) {
	a := newTestAgent(t, "shm", 2)
	a.join()
	a.begun("fork")
	for rank, r := range a.results() {
		if !strings.Contains(r.Text, "comm: Init: the agent has another connection of this worker") || r.Took > soon {
			t.Errorf("rank %d: the other process says, after %v: %s %s", rank, r.Took, r.Text, r.Error)
		}
	}
	a.all("check")
	a.lose(1)
	a.next(2)
	a.join()
}

// TestRejoinWhereWorkersDie: where workers do not outlive a round, the error of Rejoin says why.
func TestRejoinWhereWorkersDie(t *testing.T) {
	for name, c := range map[string]struct {
		environ map[string]string
		want    string
	}{
		"alone":    {nil, "this process was not started by gorun --on-failure=replace"},
		"torchrun": {map[string]string{"RANK": "0", "WORLD_SIZE": "2"}, "the launcher of this process ends all workers when one fails: gorun --on-failure=replace does not"},
		"restart":  {map[string]string{"RANK": "0", "GORUN_ROUND": "1"}, "gorun starts all workers again when one fails: use --on-failure=replace"},
		"no Init":  {map[string]string{"RANK": "0", "GORUN_ROUND": "1", "GORUN_ROUND_SOCKET": "/nowhere"}, "this process has not called Init with env://, the usual method, yet"},
	} {
		t.Run(name, func(t *testing.T) {
			for name, value := range c.environ {
				t.Setenv(name, value)
			}
			process.Note(nil, false)
			g, err := Rejoin(t.Context())
			if g != nil || err == nil || err.Error() != "comm: Rejoin: "+c.want || ExitCode(err) != 2 {
				t.Errorf("got %v, %v (exit code %d), want %q", g, err, ExitCode(err), c.want)
			}
		})
	}
}

// TestRejoinBeforeTheAgentKnows: a rank knows by itself that another one is about to end, and rejoins. It does not end the round: the
// end of the other one does.
func TestRejoinBeforeTheAgentKnows(t *testing.T) {
	a := newTestAgent(t, "shm", 2)
	a.join()
	w := a.workers[0]
	w.do("rejoin")
	a.lose(1)
	a.next(2)
	if m := w.says(func(env.Message) bool { return true }); !reflect.DeepEqual(m, env.Message{Round: 2}) {
		t.Errorf("it says %+v, want that it enters round 2", m)
	}
	a.workers[1].join()
	for rank, r := range a.results() {
		if r.Error != "" {
			t.Errorf("rank %d: %s", rank, r.Error)
		}
	}
}

// TestRejoinAfterAFailure: where workers do not outlive a failure, the error of Rejoin is about the failure. A loop that rejoins after every
// failure ends, and the workers may be started again.
func TestRejoinAfterAFailure(t *testing.T) {
	t.Setenv("RANK", "0")
	t.Setenv("GORUN_ROUND", "1")
	process.Note(nil, false)
	defer process.Note(nil, false)
	inWorldOf(t, 2, func(ctx context.Context, g *Group) error {
		if g.Rank() == 1 {
			return g.Close()
		}
		err := Barrier(ctx, g)
		if _, is := errors.AsType[*PeerError](err); !is {
			return fmt.Errorf("Barrier: %w", err)
		}
		_, err = Rejoin(ctx)
		_, peer := errors.AsType[*PeerError](err)
		if _, is := errors.AsType[*NoRejoinError](err); !is || peer || ExitCode(err) != 1 ||
			!strings.HasPrefix(err.Error(), "comm: Barrier #1: rank 1") ||
			!strings.HasSuffix(err.Error(), " (comm: Rejoin: gorun starts all workers again when one fails: use --on-failure=replace)") {
			return fmt.Errorf("Rejoin: exit code %d: %w", ExitCode(err), err)
		}
		return nil
	})
}
