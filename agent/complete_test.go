package agent

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorun/gorun/env/testing/testkit"
	"github.com/gorun/gorun/launcher"
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

// TestRunReports: what the last gang wrote into its error files is in the error, in the agent's own error file and in
// the events; what an earlier gang wrote is not.
func TestRunReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		s := newTestbed(t, 1,
			[]script{{after: time.Minute, code: 1, says: `{"message":"first"}`}, {after: time.Second, says: `{"message":"early"}`}},
			[]script{{after: time.Minute, code: 1, says: `{"message":{"message":"second"}}`}, {obeys: -1}})
		var log bytes.Buffer
		s.config.ErrorDir, s.config.ErrorFile, s.config.Events, s.config.Backend = dir, filepath.Join(dir, "own.json"), &log, "static"
		err := Run(t.Context(), s.config)
		failed, ok := errors.AsType[*WorkerError](err)
		if !ok || len(failed.ErrorFiles) != 1 || failed.ErrorFiles[0].Message != "second" {
			t.Errorf("Run: %+v", failed)
		}
		if got, want := read(t, s.config.ErrorFile), `{"message":{"errorCode":1,"message":"second"}}`; got != want {
			t.Errorf("the agent's error file holds %s, want %s", got, want)
		}
		// The clock of the bubble starts with the year 2000.
		const want = `{"name":"torchelastic.worker.status.FAILED","source":"WORKER","timestamp":946684950000,"metadata":{` +
			`"run_id":"job","global_rank":0,"group_rank":0,"worker_id":"100","role":"default","hostname":"here","state":"FAILED","total_run_time":150,` +
			`"rdzv_backend":"static","raw_error":"{\"message\":{\"message\":\"second\"}}",` +
			`"metadata":"{\"group_world_size\":1,\"entry_point\":\"prog\",\"local_rank\":0,\"role_rank\":0,\"role_world_size\":2,\"exit_code\":1,\"worker_pid\":100}",` +
			`"agent_restarts":1,"duration_ms":60000}}
{"name":"torchelastic.worker.status.TERMINATED","source":"WORKER","timestamp":946684950000,"metadata":{` +
			`"run_id":"job","global_rank":1,"group_rank":0,"worker_id":"101","role":"default","hostname":"here","state":"TERMINATED","total_run_time":150,` +
			`"rdzv_backend":"static","raw_error":null,` +
			`"metadata":"{\"group_world_size\":1,\"entry_point\":\"prog\",\"local_rank\":1,\"role_rank\":1,\"role_world_size\":2,\"exit_code\":-9,\"worker_pid\":101}",` +
			`"agent_restarts":1,"duration_ms":90000}}
{"name":"torchelastic.worker.status.FAILED","source":"AGENT","timestamp":946684950000,"metadata":{` +
			`"run_id":"job","global_rank":null,"group_rank":0,"worker_id":null,"role":"default","hostname":"here","state":"FAILED","total_run_time":150,` +
			`"rdzv_backend":"static","raw_error":"rank 0 (local rank 0, pid 100): exit code 1",` +
			`"metadata":"{\"group_world_size\":1,\"entry_point\":\"prog\"}",` +
			`"agent_restarts":1,"duration_ms":150000}}
`
		if got := log.String(); got != want {
			t.Errorf("events:\n%s\nwant:\n%s", got, want)
		}
	})
}

// TestRunEvents: the other ends of a job.
func TestRunEvents(t *testing.T) {
	states := func(log *bytes.Buffer) string {
		var out []string
		for line := range strings.Lines(log.String()) {
			name, _, _ := strings.Cut(strings.TrimPrefix(line, `{"name":"torchelastic.worker.status.`), `"`)
			out = append(out, name)
		}
		return strings.Join(out, " ")
	}
	for _, c := range []struct {
		name    string
		workers []script
		change  func(*testbed)
		want    string
	}{
		{"success", []script{{after: time.Second}, {after: time.Minute}}, nil, "SUCCEEDED SUCCEEDED SUCCEEDED"},
		{"interrupt", []script{{after: time.Second}, {obeys: 3}},
			func(s *testbed) { after(time.Hour, s.interrupts, syscall.SIGINT) }, "SUCCEEDED TERMINATED FAILED"},
		{"no start", []script{{}}, func(s *testbed) {
			s.config.Start = func(context.Context, launcher.Spec) (Gang, error) { return nil, io.ErrUnexpectedEOF }
		}, "FAILED"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newTestbed(t, 0, c.workers)
				var log bytes.Buffer
				s.config.Events = &log
				if c.change != nil {
					c.change(s)
				}
				_ = Run(t.Context(), s.config)
				if got := states(&log); got != c.want {
					t.Errorf("%q, want %q in\n%s", got, c.want, log.String())
				}
			})
		})
	}
}

// TestRunWarnsOfReports: where nothing can be written there is one warning of each kind, and the job ends as it would.
func TestRunWarnsOfReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestbed(t, 0, []script{{after: time.Second, code: 7}})
		blocked := filepath.Join(t.TempDir(), "file")
		write(t, blocked, "")
		full, err := os.Open(blocked) // for reading only
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = full.Close() }()
		s.config.ErrorDir, s.config.ErrorFile, s.config.Events = blocked, filepath.Join(blocked, "own.json"), full
		s.config.Logger = testkit.LogLines(s, slog.LevelInfo)
		if err := Run(t.Context(), s.config); text(err) != "rank 0 (local rank 0, pid 100): exit code 7" {
			t.Errorf("Run: %v", err)
		}
		s.wantStory(
			`0s [WARN]  cannot prepare the error files of the workers: error="mkdir `+blocked+`: not a directory"`,
			"0s start", "0s port released", "1s stop terminated",
			`1s [WARN]  the error file was not written: file=`+blocked+`/own.json error="not a directory"`,
			`1s [WARN]  the events were not written: error="write `+blocked+`: bad file descriptor"`)
	})
}

// TestEventsOfAnEarlyEnd: a worker may end before the agent knows that it has started.
func TestEventsOfAnEarlyEnd(t *testing.T) {
	x := exited(0, 0).Exit
	x.At = at
	got := string(events(Config{}, result{begun: at, started: at.Add(time.Second), ended: at.Add(time.Second), round: duo(0), exits: []launcher.Exit{x}}))
	if worker, _, _ := strings.Cut(got, "\n"); !strings.HasSuffix(worker, `"duration_ms":0}}`) {
		t.Errorf("%s, want a duration of 0", worker)
	}
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
