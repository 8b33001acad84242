package agent

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/rendezvous"
)

func TestFailureOf(t *testing.T) {
	dir := t.TempDir()
	c := Config{Node: rendezvous.Node{ID: "a/1", Host: "a"}, ErrorDir: dir}
	x := death.Death{Host: "a", Rank: 1, LocalRank: 1, Pid: 42, ExitCode: -int(syscall.SIGKILL), At: at, OutOfMemory: true, Stderr: []string{"one", "\x1b[1mtwo"}}
	got := failureOf(c, duo(2), x)
	want := rendezvous.Failure{Death: death.Death{Host: "a", Rank: 1, LocalRank: 1, Pid: 42, ExitCode: -9, OutOfMemory: true, At: at, Stderr: []string{"one", "two"}}, Node: "a/1", Text: "the kernel's out-of-memory killer ended it; fewer workers, or more memory for the container, may help\n" +
		"Signal 9 (SIGKILL) received by PID 42\nlast lines on stderr:\none\ntwo"}
	if !reflect.DeepEqual(*got, want) {
		t.Errorf("got  %+v\nwant %+v", *got, want)
	}

	file := filepath.Join(dir, "attempt_2", "1", "error.json")
	if err := prepareAttempt(c, 2, 2); err != nil {
		t.Fatal(err)
	}
	write(t, file, `{"message":"boom"}`)
	if got := failureOf(c, duo(2), death.Death{Rank: 1, LocalRank: 1, ExitCode: NoRestart}); got.Text != "boom" || !got.Final {
		t.Errorf("%+v, want the error file's message, and no restart", got)
	}

	// Whom workers could not reach, each peer once, and not more than there is room for.
	write(t, filepath.Join(dir, "attempt_2", "0", "error.json"), `{"message":"m","unreachable":[{"rank":3,"address":"10.0.0.2:4711"}]}`)
	many := strings.Repeat(`{"rank":4,"address":"[fe80::1%eth0]:4711"},{"rank":5,"address":"`+strings.Repeat("x.", 126)+`x:1"},`, 20)
	write(t, file, `{"message":"m","unreachable":[{"rank":3,"address":"10.0.0.2:4711"},`+many+`{"rank":6,"address":"a:1"}]}`)
	peers := failureOf(c, duo(2), x).Unreachable
	if len(peers) != 3 || peers[0] != (rendezvous.Peer{Rank: 3, Addr: "10.0.0.2:4711"}) || peers[1].Rank != 4 || peers[2].Rank != 5 {
		t.Errorf("workers could not reach %+v", peers)
	}

	// Because of whom the worker failed.
	write(t, file, `{"message":"m","failed_peer":{"rank":3,"finder":0}}`)
	if got := failureOf(c, duo(2), x).FailedPeer; got == nil || *got != (death.Peer{Rank: 3}) {
		t.Errorf("it failed because of %+v", got)
	}

	write(t, file, `{"message":"calls do not match","restart":false}`)
	for local := range 2 { // whichever of the two is seen to end first
		if got := failureOf(c, duo(2), death.Death{Rank: local, LocalRank: local, ExitCode: 1}); !got.Final {
			t.Errorf("%+v, want no restart: rank 1's error file asks for none", got)
		}
	}
	write(t, file, `{"message":"boom","restart":true}`)
	if got := failureOf(c, duo(2), death.Death{Rank: 1, LocalRank: 1, ExitCode: 2}); got.Final {
		t.Errorf("%+v, want a restart", got)
	}
}

// TestFailureIsBounded: whatever a worker says, others are told its end, in valid UTF-8 and 64 KiB of JSON.
func TestFailureIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
			strings.Repeat("<", 2000), strings.Repeat("\x00", 2000), strings.Repeat("\u202e", 2000), strings.Repeat("é", 2000), "\xff\xfe"}))
		tail := slices.Repeat([]string{line.Draw(t, "line")}, rapid.IntRange(0, 20).Draw(t, "lines"))
		x := death.Death{ExitCode: 1, Stderr: append(tail, "the end")}
		got := failureOf(Config{}, duo(0), x)
		text, err := json.Marshal(got)
		if err != nil || len(text) > 64<<10 {
			t.Fatalf("%d bytes of JSON, %v", len(text), err)
		}
		if !utf8.ValidString(got.Text) || !strings.HasSuffix(got.Text, "the end") {
			t.Fatalf("text %q", got.Text)
		}
		if last := got.Stderr[len(got.Stderr)-1]; last != "the end" || slices.ContainsFunc(got.Stderr, func(s string) bool { return !utf8.ValidString(s) }) {
			t.Fatalf("stderr %q", got.Stderr)
		}
	})
}

// TestCompleteFailure: what a summary says of restarts, and the exit code, where this node's root cause is another than
// the failure that closed the job.
func TestCompleteFailure(t *testing.T) {
	first := failedAt("here", exited(0, 3).Death)
	for _, c := range []struct {
		name                string
		nodes               int
		over                error
		e                   WorkerError
		code, restarts, max int
	}{
		{"one node", 1, closedBy(first), WorkerError{Root: crash.Death, Code: 137}, 137, 2, 4},
		{"two nodes", 2, closedBy(first), WorkerError{Root: crash.Death, Code: 137}, 3, 2, 4},
		{"two nodes, not decided", 2, rendezvous.ErrNewRound, WorkerError{Root: crash.Death, Code: 137}, 137, 2, 4},
		{"elsewhere", 2, closedBy(far), WorkerError{Root: far.Death, Code: 4, Elsewhere: far}, 4, 2, 4},
		{"elsewhere, in a later round", 2, rendezvous.ErrNewRound, WorkerError{Root: far.Death, Code: 4, Elsewhere: far}, 4, 0, 0},
	} {
		round, end := rendezvous.Begin(rendezvous.Round{Restarts: 2, Size: c.nodes}, nil)
		if err := end(c.over); err != nil {
			t.Fatal(err)
		}
		l := loop{Config: Config{MaxRestarts: 4}, round: round}
		l.completeFailure(&c.e)
		if c.e.Code != c.code || c.e.Restarts != c.restarts || c.e.MaxRestarts != c.max {
			t.Errorf("%s: exit code %d, %d restarts of %d; want %d, %d of %d", c.name, c.e.Code, c.e.Restarts, c.e.MaxRestarts, c.code, c.restarts, c.max)
		}
	}
}

// TestSummaryElsewhere: another node's failure is told as that node has told it.
func TestSummaryElsewhere(t *testing.T) {
	f := &rendezvous.Failure{Death: death.Death{Host: "b\x1b[2J", Rank: 5, LocalRank: 1, Pid: 42, ExitCode: -9, At: at.In(time.Local)}, Node: "b/1", Text: "a note\nand \x1ba text"}
	e, ok := errors.AsType[*WorkerError](outcomeError(rendezvous.Outcome{Code: 137, Failure: f}, []death.Death{
		{Rank: 0, ExitCode: 1, At: at}, {Rank: 1, LocalRank: 1, ExitCode: -int(syscall.SIGTERM), Stopped: true, At: at}, {Rank: 2, At: at.Add(-time.Second)}}))
	if !ok {
		t.Fatal("no WorkerError")
	}
	e.Program, e.Host = "prog", "a"
	want := `============================================================
prog FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-01-02_15:04:05.678
  host      : a
  rank      : 0 (local_rank: 0)
  exitcode  : 1 (pid: 0)
  error_file: <N/A>
  traceback : no error file and nothing on stderr
[2]:
  time      : 2026-01-02_15:04:05.678
  host      : a
  rank      : 1 (local_rank: 1)
  exitcode  : -15 (SIGTERM) (pid: 0)
  error_file: <N/A>
  traceback : Signal 15 (SIGTERM) received by PID 0: stopped by gorun after rank 5 failed
Before that, with exit code 0: rank 2 (pid 0) at 15:04:04.678.
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : ` + f.At.Format("2006-01-02_15:04:05.000") + `
  host      : b\x1b[2J
  rank      : 5 (local_rank: 1)
  exitcode  : -9 (SIGKILL) (pid: 42)
  error_file: <N/A>
  traceback : a note
    and \x1ba text
============================================================
`
	if got := e.Summary(); got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
	document, err := e.document()
	if err != nil || !strings.Contains(string(document), `"errorCode":-9`) || !strings.Contains(string(document), "a note") {
		t.Errorf("document %s, %v", document, err)
	}
}
