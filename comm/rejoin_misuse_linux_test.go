package comm

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
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

// TestRejoinWithoutNeed: nothing has failed. The others learn that this rank has left; all of them wait until their contexts end, and join the
// next round when there is one.
func TestRejoinWithoutNeed(t *testing.T) {
	a := newTestAgent(t, "shm", 3)
	a.join()
	a.workers[0].do("rejoin", "300")
	for _, r := range []int{1, 2} {
		a.workers[r].do("run", "Barrier")
	}
	for rank, r := range a.results() {
		if rank == 0 {
			wantError(t, a.workers[0], r, "comm: Rejoin: there is no round after round 1 yet: the agent has not said that round 1 is over: context deadline exceeded", 1)
		} else {
			wantError(t, a.workers[rank], r, "has left (closed ", 1)
		}
	}
	a.over()
	a.next(3)
	a.join()
}

// TestRejoinOfSome: the others never call it, call Init, or have ended. Rejoin names them, and succeeds in a later round.
func TestRejoinOfSome(t *testing.T) {
	for name, c := range map[string]struct {
		others  func(w *testWorker)
		want    string
		another string // what the others' call says
	}{
		"never called": {nil, "2 of 3 ranks came to the store at ", ""},
		"calls Init":   {func(w *testWorker) { w.do("init") }, "2 of 3 ranks came to the store at ", "rank 1 (pid "},
		"exits":        {func(w *testWorker) { w.do("exit", "3") }, "2 of 3 ranks came to the store at ", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newTestAgent(t, "tcp", 3, "COMM_TEST_TIMEOUT=2s")
			a.join()
			a.lose(1)
			a.next(3)
			odd := a.workers[2]
			if c.others != nil {
				c.others(odd)
			}
			for _, r := range []int{0, 1} {
				a.workers[r].join()
			}
			for _, r := range []int{0, 1} {
				wantError(t, a.workers[r], a.workers[r].result(), c.want, 2)
			}
			if c.another != "" {
				wantError(t, odd, odd.result(), c.another, 1)
			}
			a.lose(2)
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

// TestRejoinWhereWorkersDie: Rejoin says why it cannot be.
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
			g, err := Rejoin(t.Context())
			if g != nil || err == nil || err.Error() != "comm: Rejoin: "+c.want || ExitCode(err) != 2 {
				t.Errorf("got %v, %v (exit code %d), want %q", g, err, ExitCode(err), c.want)
			}
		})
	}
}
