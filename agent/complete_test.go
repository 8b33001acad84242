package agent

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorun/gorun/env/testing/testkit"
	"github.com/gorun/gorun/rendezvous"
)

// TestRunTells: a failure is in the log when it happens, in the words that people search for in torchrun's.
func TestRunTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestbed(t, 2,
			[]script{{after: time.Hour, code: 7}, {obeys: -1}},
			[]script{{after: time.Second}, {after: time.Minute, code: 1}},
			[]script{{obeys: 0}, {after: time.Minute, code: NoRestart}})
		s.config.Logger = testkit.LogLines(s, slog.LevelInfo)
		if err := Run(t.Context(), s.config); !strings.HasPrefix(text(err), "rank 1 ") {
			t.Errorf("Run: %v", err)
		}
		s.wantStory(
			"0s start", "0s port released",
			"1h0m0s stop terminated",
			"1h0m0s [ERROR] failed (exitcode: 7) local_rank: 0 (pid: 100) of binary: prog; stopping the others: rank=0 host=here",
			"1h0m5s [INFO]  1 worker has not ended yet: shutdown_timeout=30s",
			"1h0m30s [WARN]  [default] Worker group FAILED. 2/2 attempts left; will restart worker group: rank 0 on here: exit code 7; restart 1 of 2",
			"1h0m30s start", "1h0m30s port released",
			"1h1m30s stop terminated",
			"1h1m30s [ERROR] failed (exitcode: 1) local_rank: 1 (pid: 101) of binary: prog: rank=1 host=here",
			"1h1m30s [WARN]  [default] Worker group FAILED. 1/2 attempts left; will restart worker group: rank 1 on here: exit code 1; restart 2 of 2",
			"1h1m30s start", "1h1m30s port released",
			"1h2m30s stop terminated",
			"1h2m30s [ERROR] failed (exitcode: 93) local_rank: 1 (pid: 101) of binary: prog; stopping the others: rank=1 host=here")
	})
}

// TestRunTellsTheCause: the reason for a restart is the root cause, as it would be in the summary, whoever was reported first.
func TestRunTellsTheCause(t *testing.T) {
	for name, c := range map[string]struct {
		first []script
		cause string
	}{
		"a crash that was seen late": {
			[]script{{after: time.Minute, code: 1}, {dies: syscall.SIGSEGV}}, "rank 1 on here: signal 11 (SIGSEGV)",
		},
		"an older error file": {
			[]script{{after: time.Minute, code: 1, says: `{"message":"it is gone"}`}, {says: `{"message":"it is wrong"}`, early: true, obeys: 3}}, "rank 1 on here: exit code 3",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				s := newTestbed(t, 1, c.first, []script{{after: time.Second}, {after: time.Second}})
				s.config.ErrorDir = dir
				s.config.Logger = testkit.LogLines(s, slog.LevelWarn)
				if err := Run(t.Context(), s.config); err != nil {
					t.Errorf("Run: %v", err)
				}
				if want := "will restart worker group: " + c.cause + "; restart 1 of 1"; !strings.Contains(strings.Join(s.story, "\n"), want) {
					t.Errorf("got %q, want %q", s.story, want)
				}
			})
		})
	}
}

// TestRunReports: what the last gang wrote into its error files is in the error and in the agent's own error
// file; what an earlier gang wrote is not.
func TestRunReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		s := newTestbed(t, 1,
			[]script{{after: time.Minute, code: 1, says: `{"message":"first"}`}, {after: time.Second, says: `{"message":"early"}`}},
			[]script{{after: time.Minute, code: 1, says: `{"message":{"message":"second"}}`}, {obeys: -1}})
		s.config.ErrorDir, s.config.ErrorFile = dir, filepath.Join(dir, "own.json")
		err := Run(t.Context(), s.config)
		failed, ok := errors.AsType[*WorkerError](err)
		if !ok || len(failed.ErrorFiles) != 1 || failed.ErrorFiles[0].Message != "second" {
			t.Errorf("Run: %+v", failed)
		}
		if got, want := read(t, s.config.ErrorFile), `{"message":{"errorCode":1,"message":"second"}}`; got != want {
			t.Errorf("the agent's error file holds %s, want %s", got, want)
		}
	})
}

// TestRunWarnsOfReports: where nothing can be written there is one warning of each kind, and the job ends as it would.
func TestRunWarnsOfReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestbed(t, 0, []script{{after: time.Second, code: 7}})
		blocked := filepath.Join(t.TempDir(), "file")
		write(t, blocked, "")
		s.config.ErrorDir, s.config.ErrorFile = blocked, filepath.Join(blocked, "own.json")
		s.config.Logger = testkit.LogLines(s, slog.LevelInfo)
		if err := Run(t.Context(), s.config); text(err) != "rank 0 (local rank 0, pid 100): exit code 7" {
			t.Errorf("Run: %v", err)
		}
		s.wantStory(
			`0s [WARN]  cannot prepare the error files of the workers: error="mkdir `+blocked+`: not a directory"`,
			"0s start", "0s port released", "1s stop terminated",
			`1s [WARN]  the error file was not written: file=`+blocked+`/own.json error="not a directory"`)
	})
}

// A stuckRendezvous does not end until it is released.
type stuckRendezvous struct {
	rendezvous.Rendezvous
	release chan struct{}
}

func (r stuckRendezvous) Close(context.Context, error) error {
	<-r.release
	return nil
}

// TestCloseInTime: what does not end when the job does is left behind, and that is told.
func TestCloseInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, begun := stuckRendezvous{release: make(chan struct{})}, time.Now()
		defer close(r.release)
		if err := closeRendezvous(t.Context(), r, nil); err == nil || time.Since(begun) != shutdownTimeout {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
	})
}
