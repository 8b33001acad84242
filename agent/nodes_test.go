package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorun/gorun/env/testing/testkit"
	"github.com/gorun/gorun/launcher"
)

// newTestbeds are those of nodes a, b, ..., each with the same number of workers in each attempt.
func newTestbeds(t *testing.T, maxRestarts int, attempts ...[][]script) []*testbed {
	h := &hub{size: len(attempts), maxRestarts: maxRestarts}
	var stages []*testbed
	for i, list := range attempts {
		s, name := newTestbed(t, maxRestarts, list...), string(rune('a'+i))
		s.config.Node.ID, s.config.Node.Host = name, name
		s.config.Rendezvous, s.config.ExitBarrier = &seat{hub: h}, time.Hour
		s.config.Logger = testkit.LogLines(s, slog.LevelInfo)
		stages = append(stages, s)
	}
	return stages
}

// runAll returns how each node's job has ended.
func runAll(t *testing.T, stages []*testbed) []error {
	ends := make([]error, len(stages))
	var all sync.WaitGroup
	for i, s := range stages {
		all.Go(func() { ends[i] = Run(t.Context(), s.config) })
	}
	all.Wait()
	return ends
}

// TestNodesRestart: a failure on one node starts the workers of both again, when both gangs are gone.
func TestNodesRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestbeds(t, 1,
			[][]script{{{obeys: 143, takes: 9 * time.Second}}, {{after: time.Minute}}},
			[][]script{{{after: time.Minute, code: 3}}, {{after: time.Hour / 2}}})
		for i, err := range runAll(t, s) {
			if err != nil {
				t.Errorf("node %d: %v", i, err)
			}
		}
		const again = "1m9s [WARN]  [default] Worker group FAILED. 1/1 attempts left; will restart worker group: rank 1 on b: exit code 3; restart 1 of 1"
		s[0].wantStory("0s start", "1m0s stop terminated", "1m5s [INFO]  1 worker has not ended yet: shutdown_timeout=30s", again, "1m9s start",
			"2m10s [INFO]  every worker of this node exited 0; waiting for the workers of the other nodes: at_most=1h0m0s")
		s[1].wantStory("0s start", "1m0s stop terminated",
			"1m0s [ERROR] failed (exitcode: 3) local_rank: 0 (pid: 101) of binary: prog: rank=1 host=b", again, "1m9s start")
		for _, want := range []string{"TORCHELASTIC_RESTART_COUNT=1", "TORCHELASTIC_MAX_RESTARTS=1", "GORUN_ROUND=2"} {
			if !slices.Contains(s[0].specs[1].Workers[0].Env, want) {
				t.Errorf("workers of the node that has not failed do not see %s", want)
			}
		}
	})
}

// TestNodesFail: every node names the worker that failed, and ends with its exit code.
func TestNodesFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestbeds(t, 0,
			[][]script{{{obeys: 143}, {after: time.Second}}},
			[][]script{{{after: time.Minute, code: 3, says: `{"message":"boom"}`}, {obeys: 1}}})
		s[1].config.ErrorDir = t.TempDir()
		ends := runAll(t, s)
		for i, err := range ends {
			failed, ok := errors.AsType[*WorkerError](err)
			if !ok || failed.Code != 3 || failed.Root.Rank != 2 || len(failed.Stopped) != 1 {
				t.Fatalf("node %d: %+v", i, err)
			}
			summary := failed.Summary()
			for _, want := range []string{"[0]:\n  time      : 2000-01-01_00:01:00.000\n  host      : b\n  rank      : 2 (local_rank: 0)\n", "  traceback : boom\n",
				[]string{"[1]:\n  time      : 2000-01-01_00:01:00.000\n  host      : a\n  rank      : 0 ", "[1]:\n  time      : 2000-01-01_00:01:00.000\n  host      : b\n  rank      : 3 "}[i]} {
				if !strings.Contains(summary, want) {
					t.Errorf("node %d: want %q in\n%s", i, want, summary)
				}
			}
		}
		if got, want := ends[0].Error(), "rank 2 on b: exit code 3"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// TestNodesVictimFirst: the worker that failed because of another one is seen first. Every node names the other one, for the restart as
// well as in the end.
func TestNodesVictimFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		victim := script{after: time.Minute, code: 1, says: `{"message":"rank 1 died","failed_peer":{"rank":1,"finder":0}}`}
		gang := []script{victim, {dies: syscall.SIGABRT}}
		s := newTestbeds(t, 1, [][]script{gang, gang}, [][]script{{{obeys: 143}}, {{obeys: 143}}})
		s[0].config.ErrorDir = t.TempDir()
		for i, err := range runAll(t, s) {
			failed, ok := errors.AsType[*WorkerError](err)
			if !ok || failed.Code != 134 || failed.Root.Rank != 1 || (i == 0) != (len(failed.Others) == 1 && failed.Others[0].Rank == 0) {
				t.Errorf("node %d: %+v", i, err)
			}
			again := "will restart worker group: rank 1 on a: signal 6 (SIGABRT); restart 1 of 1"
			if story := strings.Join(s[i].story, "\n"); !strings.Contains(story, again) {
				t.Errorf("node %d: want %q in\n%s", i, again, story)
			}
		}
	})
}

// TestNodesExitBarrier: a node that is done waits for the others, and for as long as it was told.
func TestNodesExitBarrier(t *testing.T) {
	for _, c := range []struct {
		name   string
		worker script // of node b
		took   time.Duration
		story  []string
	}{
		{"they succeed", script{after: time.Hour}, time.Hour, nil},
		{"one of them fails, and all start again", script{after: 30 * time.Minute, code: 3}, 3 * time.Hour, []string{
			"30m0s [WARN]  [default] Worker group FAILED. 3/3 attempts left; will restart worker group: rank 1 on b: exit code 3; restart 1 of 3",
			"30m0s start"}},
		{"they take too long", script{after: 2 * time.Hour}, time.Hour + time.Minute,
			[]string{"1h1m0s [WARN]  leaving before the other nodes' workers have ended: waited=1h0m0s"}},
		{"one of them asks for no restart", script{after: 30 * time.Minute, code: NoRestart}, 30 * time.Minute, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newTestbeds(t, 3, [][]script{{{after: time.Minute}}, {{after: 150 * time.Minute}}}, [][]script{{c.worker}, {{after: 2 * time.Hour}}})
				go func() { _ = Run(t.Context(), s[1].config) }()
				if code := exitOfJob(Run(t.Context(), s[0].config)); (code == NoRestart) != (c.worker.code == NoRestart) {
					t.Errorf("exit code %d", code)
				}
				if took := time.Since(s[0].start); took != c.took {
					t.Errorf("took %s, want %s", took, c.took)
				}
				s[0].wantStory(append([]string{"0s start",
					"1m1s [INFO]  every worker of this node exited 0; waiting for the workers of the other nodes: at_most=1h0m0s"}, c.story...)...)
			})
		})
	}
}

func exitOfJob(err error) int {
	if failed, ok := errors.AsType[*WorkerError](err); ok {
		return failed.Code
	}
	return 0
}

// TestNodesDrain: the job goes on without an interrupted node as soon as that is asked to end.
func TestNodesDrain(t *testing.T) {
	for _, code := range []int{0, 143} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newTestbeds(t, 0,
					[][]script{{{obeys: 143}}, {{after: time.Minute}}},
					[][]script{{{obeys: code, takes: time.Second}}})
				after(time.Hour, s[1].interrupts, syscall.SIGTERM)
				ends := runAll(t, s)
				if want := map[int]string{0: "", 143: "stopped by signal 15 (SIGTERM)"}[code]; ends[0] != nil || text(ends[1]) != want {
					t.Errorf("%v; want %q of node b", ends, want)
				}
				s[0].wantStory("0s start", "1h0m0s stop terminated",
					"1h0m0s [INFO]  starting the workers again: b has left: stopped by signal 15 (SIGTERM)", "1h0m0s start")
			})
		})
	}
}

// TestSignalsWhileWorkersStart: what comes for workers that are just being started reaches them as soon as they are there.
func TestSignalsWhileWorkersStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestbed(t, 0, []script{{after: time.Minute}})
		suspends := make(chan os.Signal)
		s.config.Suspends = suspends
		s.config.Suspend = func() time.Duration {
			s.record("suspended")
			time.Sleep(time.Hour)
			return time.Hour
		}
		s.config.Start = func(ctx context.Context, spec launcher.Spec) (Gang, error) {
			defer time.Sleep(2 * time.Second)
			return s.startGang(ctx, spec)
		}
		after(time.Second, s.signals, syscall.SIGUSR1)
		after(time.Second+1, suspends, syscall.SIGTSTP)
		if err := Run(t.Context(), s.config); err != nil {
			t.Error(err)
		}
		s.wantStory("0s start", "2s port released", "2s signal user defined signal 1", "2s suspend", "2s suspended", "1h0m2s resume after 1h0m0s")
	})
}

// TestSuspend: gang and agent stand still together, the gang first, and time does not count: not that of the exit barrier,
// nor a lease without a word.
func TestSuspend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestbeds(t, 0, [][]script{{{after: time.Minute}}}, [][]script{{{after: 10 * time.Hour, obeys: 143}}, {{after: time.Minute}}})
		suspends := make(chan os.Signal)
		s[0].config.Suspends, s[0].config.Lease = suspends, time.Minute
		s[0].config.Suspend = func() time.Duration {
			s[0].record("suspended")
			time.Sleep(2 * time.Hour)
			return 2 * time.Hour
		}
		after(time.Second, suspends, syscall.SIGTSTP)             // while the worker runs, and ends at its own time
		after(2*time.Hour+time.Hour/2, suspends, syscall.SIGTSTP) // while the others are waited for
		runAll(t, s)
		s[0].wantStory("0s start", "1s suspend", "1s suspended", "2h0m1s resume after 2h0m0s",
			"2h0m1s [WARN]  continued after 2h0m0s, which is longer than this node's lease of 1m0s: the other nodes may have gone on without it",
			"2h0m2s [INFO]  every worker of this node exited 0; waiting for the workers of the other nodes: at_most=1h0m0s",
			"2h30m0s suspended",
			"4h30m0s [WARN]  continued after 2h0m0s, which is longer than this node's lease of 1m0s: the other nodes may have gone on without it",
			"5h0m1s [WARN]  leaving before the other nodes' workers have ended: waited=1h0m0s")
	})
}
