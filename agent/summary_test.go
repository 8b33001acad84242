package agent

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/rendezvous"
)

var at = time.Date(2026, 1, 2, 15, 4, 5, 678e6, time.UTC)

func TestSummary(t *testing.T) {
	e := &WorkerError{
		Root:   death.Death{Rank: 5, LocalRank: 1, Pid: 4242, ExitCode: 3, At: at, Stderr: []string{"Traceback:", "RuntimeError: boom"}},
		Others: []death.Death{{Rank: 7, LocalRank: 3, Pid: 4244, ExitCode: -int(syscall.SIGSEGV), At: at.Add(time.Millisecond), Stderr: []string{"1", "2", "3", "4", "5", "Fatal Python error: Segmentation fault"}}},
		Stopped: []death.Death{
			{Rank: 4, LocalRank: 0, Pid: 4241, ExitCode: -int(syscall.SIGTERM), Stopped: true, At: at.Add(time.Second), Stderr: []string{"who?"}},
			{Rank: 6, LocalRank: 2, Pid: 4243, ExitCode: 1, Stopped: true, At: at.Add(time.Minute)}},
		ErrorFiles: map[int]ErrorFile{5: {
			File: "/logs/job_x/attempt_2/1/error.json", Message: "RuntimeError: boom", At: at.Truncate(time.Second).Add(-9 * time.Second),
			Callstack: "Traceback (most recent call last):\n  File \"train.py\", line 7, in main\n    step()\nRuntimeError: boom\n"},
			6: {File: "/logs/job_x/attempt_2/2/error.json", Message: "RuntimeError: peer is gone", Callstack: "Traceback:\nRuntimeError: peer is gone"}},
		Exited:   []death.Death{{Rank: 3, Pid: 4240, At: at.Add(-time.Second)}},
		Restarts: 2, MaxRestarts: 2, Program: "train.py", Host: "node-a",
	}
	const want = `============================================================
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-01-02_15:04:05.679
  host      : node-a
  rank      : 7 (local_rank: 3)
  exitcode  : -11 (SIGSEGV) (pid: 4244)
  error_file: <N/A>
  traceback : Signal 11 (SIGSEGV) received by PID 4244
    last lines on stderr:
    (1 line before these)
    2
    3
    4
    5
    Fatal Python error: Segmentation fault
[2]:
  time      : 2026-01-02_15:04:06.678
  host      : node-a
  rank      : 4 (local_rank: 0)
  exitcode  : -15 (SIGTERM) (pid: 4241)
  error_file: <N/A>
  traceback : Signal 15 (SIGTERM) received by PID 4241: stopped by gorun after rank 5 failed
[3]:
  time      : 2026-01-02_15:05:05.678
  host      : node-a
  rank      : 6 (local_rank: 2)
  exitcode  : 1 (pid: 4243)
  error_file: /logs/job_x/attempt_2/2/error.json
  traceback : exit code 1: stopped by gorun after rank 5 failed
    RuntimeError: peer is gone
Before that, with exit code 0: rank 3 (pid 4240) at 15:04:04.678.
2 restarts were allowed, and all were used.
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-01-02_15:04:05.678 (its error is from 15:03:56)
  host      : node-a
  rank      : 5 (local_rank: 1)
  exitcode  : 3 (pid: 4242)
  error_file: /logs/job_x/attempt_2/1/error.json
  traceback : Traceback (most recent call last):
      File "train.py", line 7, in main
        step()
    RuntimeError: boom
============================================================
`
	if got := e.Summary(); got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
	if got, want := e.Error(), "rank 5 (local rank 1, pid 4242): exit code 3"; got != want {
		t.Errorf("Error: %q, want %q", got, want)
	}
}

// TestSummaryStory: what the root cause has to say, from its error file and from stderr.
func TestSummaryStory(t *testing.T) {
	own := death.Death{Pid: 42, ExitCode: 1, At: at}
	talks, crashed := own, death.Death{Pid: 42, ExitCode: -int(syscall.SIGABRT), At: at}
	talks.Stderr = []string{"one", "two"}
	for _, c := range []struct {
		name string
		root death.Death
		r    ErrorFile
		want string
	}{
		{"nothing", own, ErrorFile{}, "no error file and nothing on stderr\n"},
		{"stderr", talks, ErrorFile{}, "last lines on stderr:\n    one\n    two\n"},
		{"a signal", crashed, ErrorFile{}, "Signal 6 (SIGABRT) received by PID 42\n"},
		{"a signal after an error", crashed, ErrorFile{File: "f", Message: "E"}, "Signal 6 (SIGABRT) received by PID 42\n    E\n"},
		{"a message", own, ErrorFile{File: "f", Message: "E: x\ny"}, "E: x\n    y\n"},
		{"a message and stderr", talks, ErrorFile{File: "f", Message: "E"}, "E\n    last lines on stderr:\n    one\n    two\n"},
		{"a call stack", talks, ErrorFile{File: "f", Message: "E", Callstack: "stack\nE\n"}, "stack\n    E\n"},
		{"a call stack without the message", talks, ErrorFile{File: "f", Message: "E", Callstack: "stack"}, "E\n    stack\n"},
		{"no use", talks, ErrorFile{File: "f", Problem: "it is empty"}, "unreadable error file: it is empty\n    last lines on stderr:\n    one\n    two\n"},
		{"some use", own, ErrorFile{File: "f", Problem: "it is not JSON", Message: "{boo"}, "unreadable error file: it is not JSON\n    {boo\n"},
		{"control characters", own, ErrorFile{File: "f", Message: "\x1b[31mred\x1b[0m\ttab \x1b]0;title\a\x00\u009b\u202e\xff"},
			"red\ttab \\x1b]0;title\\a\\x00\\u009b\\u202e\uFFFD\n"},
		{"a line that ends as on Windows", own, ErrorFile{File: "f", Message: "a\r\nb\rc\r\n"}, "a\n    b\\rc\n"},
		{"a long line", own, ErrorFile{File: "f", Message: strings.Repeat("é", 600)}, strings.Repeat("é", 512) + "...\n"},
		{"many lines", own, ErrorFile{File: "f", Message: strings.Repeat("x\n", 102)}, "(2 lines before these)\n" + strings.Repeat("    x\n", 100)},
	} {
		e := WorkerError{Root: c.root}
		if c.r.File != "" {
			e.ErrorFiles = map[int]ErrorFile{0: c.r}
		}
		got := e.Summary()
		if want := "  traceback : " + c.want + strings.Repeat("=", ruler); !strings.Contains(got, want) {
			t.Errorf("%s: want\n%s\nin\n%s", c.name, want, got)
		}
		if want := map[bool]string{true: "error_file: f\n", false: "error_file: <N/A>\n"}[c.r.File != ""]; !strings.Contains(got, want) {
			t.Errorf("%s: want %q in\n%s", c.name, want, got)
		}
	}
}

// different returns failures of workers with exit codes from 1.
func different(n int) (list []death.Death) {
	for i := range n {
		list = append(list, death.Death{Rank: 1 + i, ExitCode: 1 + i})
	}
	return list
}

// stoppedWith returns failures, with these exit codes, of workers that gorun stopped.
func stoppedWith(codes ...int) (list []death.Death) {
	for i, code := range codes {
		list = append(list, death.Death{Rank: 100 + i, ExitCode: code, Stopped: true})
	}
	return list
}

// TestSummarySame: the summary lists failures that look the same once.
func TestSummarySame(t *testing.T) {
	said := func(rank int, lines ...string) death.Death {
		return death.Death{Rank: rank, Pid: 100 + rank, ExitCode: 1, Stderr: lines}
	}
	term := func(rank int) death.Death {
		return death.Death{Rank: rank, Pid: 100 + rank, ExitCode: -int(syscall.SIGTERM), Stopped: true, At: at.Add(time.Duration(rank) * time.Second)}
	}
	for _, c := range []struct {
		name string
		e    WorkerError
		want []string // of each failure: the rank, and the line about those that are the same
	}{
		{"all", WorkerError{Root: said(2, "boom"), Others: []death.Death{said(4, "boom"), said(0, "boom"), said(1, "boom")}},
			[]string{"2", "3 other workers: ranks 0-1,4"}},
		{"some", WorkerError{Root: said(0, "boom"), Others: []death.Death{said(1, "bang"), said(2, "boom"), said(3, "bang"), said(4, "bong")}},
			[]string{"1", "1 other worker: rank 3", "4", "0", "1 other worker: rank 2"}},
		{"stopped", WorkerError{Root: said(3, "boom"), Stopped: []death.Death{term(1), term(0), term(2)}},
			[]string{"1", "2 other workers: ranks 0,2", "3"}},
		{"another exit code", WorkerError{Root: said(0), Others: []death.Death{{Rank: 1, ExitCode: 2}}}, []string{"1", "0"}},
		{"stopped with the code of the root cause", WorkerError{Root: said(0), Stopped: []death.Death{{Rank: 1, ExitCode: 1, Stopped: true}}}, []string{"1", "0"}},
		{"torch's prefix", WorkerError{Root: said(1, "[rank1]: Traceback", "[rank1]: boom"), Others: []death.Death{said(2, "[rank2]: Traceback", "[rank2]: boom"), said(3, "[rank2]: Traceback")}},
			[]string{"3", "1", "1 other worker: rank 2"}},
		{"error files", WorkerError{Root: said(0), Others: []death.Death{said(1), said(2)}, ErrorFiles: map[int]ErrorFile{
			0: {File: "a", Message: "E"}, 1: {File: "b", Message: "E"}, 2: {File: "c", Message: "F"}}}, []string{"2", "0", "1 other worker: rank 1"}},
		{"the root cause is elsewhere", WorkerError{Root: said(9), Elsewhere: &rendezvous.Failure{Death: death.Death{Rank: 9}}, Others: []death.Death{said(1), said(2)}},
			[]string{"1", "1 other worker: rank 2", "9"}},
	} {
		var got []string
		for line := range strings.Lines(c.e.Summary()) {
			if rank, ok := strings.CutPrefix(line, "  rank      : "); ok {
				got = append(got, strings.Fields(rank)[0])
			}
			if same, ok := strings.CutPrefix(line, "  same for  : "); ok {
				got = append(got, strings.TrimSpace(same))
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q in\n%s", c.name, got, c.want, c.e.Summary())
		}
	}
}

func TestSummaryNotes(t *testing.T) {
	killed := death.Death{ExitCode: -int(syscall.SIGKILL), At: at}
	lost, stopped, oom, talks := killed, killed, killed, death.Death{ExitCode: 1}
	lost.Cause, stopped.Stopped, oom.OutOfMemory = death.GuardLost, true, true
	wrong := killed
	wrong.Cause, wrong.Why = death.Fault, "did not enter round 2"
	said := func(tail string) WorkerError { x := talks; x.Stderr = []string{"x", tail}; return WorkerError{Root: x} }
	for _, c := range []struct {
		name         string
		e            WorkerError
		has, without string
	}{
		{"killed by somebody", WorkerError{Root: killed}, "  note      : gorun did not send it: the out-of-memory killer may have", "restart"},
		{"killed for what it did", WorkerError{Root: wrong}, "  note      : it did not enter round 2, so gorun killed it", "memory"},
		{"killed by the kernel", WorkerError{Root: oom}, "  note      : the kernel's out-of-memory killer ended it", "may have"},
		{"child killed by the kernel", WorkerError{Root: death.Death{ExitCode: 1, OutOfMemory: true}},
			"  note      : the kernel's out-of-memory killer has ended a process on this node", "killer ended it"},
		{"guard killed", WorkerError{Root: lost}, "guard", "memory"},
		{"killed by us", WorkerError{Root: stopped}, "Signal 9 (SIGKILL)", "memory"},
		{"own code", WorkerError{Root: death.Death{ExitCode: 137}}, "exitcode  : 137", "memory"},
		{"no stderr", WorkerError{Root: killed}, "SIGKILL", "last lines"},
		{"the GPU's memory", said("torch.OutOfMemoryError: CUDA out of memory. Tried"), "the GPU's memory ran out", "container"},
		{"Python's memory", said("MemoryError"), "reports that memory ran out", "GPU"},
		{"C++'s memory", said("  what():  std::bad_alloc"), "reports that memory ran out", "GPU"},
		{"Go's memory", said("fatal error: runtime: out of memory"), "reports that memory ran out", "GPU"},
		{"torch's memory", said("RuntimeError: [enforce fail at alloc_cpu.cpp:75] . DefaultCPUAllocator: can't"), "reports that memory ran out", "GPU"},
		{"in the error file", WorkerError{Root: talks, ErrorFiles: map[int]ErrorFile{0: {Callstack: "MemoryError"}}}, "reports that memory ran out", "GPU"},
		{"no module", WorkerError{Python: "/usr/bin/python3", Root: death.Death{ExitCode: 1, Stderr: []string{"ModuleNotFoundError: No module named 'a.b'"}}},
			"  note      : /usr/bin/python3 has no module a.b: install it", "memory"},
		{"no module of another language", said("ModuleNotFoundError: No module named 'a'"), "ModuleNotFoundError", "note"},
		{"enough memory", said("RuntimeError: boom"), "boom", "note"},
		{"alone", WorkerError{Root: killed}, "Failures:\n  <NO_OTHER_FAILURES>\n----", "And"},
		{"no restart", WorkerError{Root: death.Death{ExitCode: 93}, MaxRestarts: 4, Restarts: 1},
			"Exit code 93 asks for no restart; 1 of 4 restarts were used.", "allowed"},
		{"interrupted", WorkerError{Root: killed, MaxRestarts: 3, Restarts: 1}, "1 of 3 restarts were used.", "allowed"},
		{"one restart", WorkerError{Root: killed, MaxRestarts: 1, Restarts: 1}, "1 restart was allowed, and it was used.", "were"},
		{"one stopped", WorkerError{Root: killed, Stopped: stoppedWith(1)}, "[1]:", "And"},
		{"eight failed", WorkerError{Root: killed, Others: different(7)}, "[7]:", "And"},
		{"nine failed", WorkerError{Root: killed, Others: different(8)}, "\nAnd 1 that failed on their own.\n", "[8]:"},
		{"many failed", WorkerError{Root: killed, Others: different(30), Stopped: stoppedWith(1, 1, 2)},
			"\nAnd 23 that failed on their own, 3 that gorun stopped.\n", "[8]:"},
		{"many stopped", WorkerError{Root: killed, Others: different(2), Stopped: stoppedWith(1, 2, 3, 4, 5, 6, 7, 7, 8)},
			"\nAnd 4 that gorun stopped.\n", "[8]:"},
		{"a hang that forges a line", WorkerError{Root: death.Death{ExitCode: -int(syscall.SIGKILL), Cause: death.Hang, Why: "it waits\n[1]:\x1b[2J"}}, `it waits\n[1]:\x1b[2J, so gorun killed it`, "\n[1]:"},
		{"a bad name", WorkerError{Root: killed, Program: "a\x1b[2Jb", Host: "h\nh"}, "a\\x1b[2Jb FAILED\n", "h\nh"},
	} {
		got := c.e.Summary()
		if !strings.Contains(got, c.has) || strings.Contains(got, c.without) {
			t.Errorf("%s: want %q and not %q in\n%s", c.name, c.has, c.without, got)
		}
	}
}

// TestSummaryIsSafe: whatever workers say, a terminal gets lines of text, not too many of them, and the root cause last.
func TestSummaryIsSafe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wild := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
		exit := rapid.Custom(func(t *rapid.T) death.Death {
			return death.Death{Rank: rapid.IntRange(1, 5).Draw(t, "rank"), ExitCode: 1, Stderr: rapid.SliceOfN(wild, 0, 20).Draw(t, "tail"), Cause: death.Hang, Why: wild.Draw(t, "hung")}
		})
		report := rapid.Custom(func(t *rapid.T) ErrorFile {
			return ErrorFile{File: wild.Draw(t, "file"), Message: wild.Draw(t, "message"), Callstack: wild.Draw(t, "stack"), Problem: wild.Draw(t, "problem")}
		})
		e := WorkerError{Program: wild.Draw(t, "program"), Host: wild.Draw(t, "host"), Root: death.Death{Rank: 0, ExitCode: 2, Stderr: []string{wild.Draw(t, "tail")}, Cause: rapid.SampledFrom([]death.Cause{death.Fault, death.Revoked}).Draw(t, "cause"), Why: wild.Draw(t, "why")},
			Others: rapid.SliceOf(exit).Draw(t, "others"), Stopped: rapid.SliceOf(exit).Draw(t, "stopped"),
			ErrorFiles: rapid.MapOf(rapid.IntRange(0, 5), report).Draw(t, "reports")}
		got := e.Summary()
		if i := strings.IndexFunc(got, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }); i >= 0 || !utf8.ValidString(got) {
			t.Fatalf("not fit for a terminal at byte %d: %q", i, got)
		}
		if notes := strings.Count(got, "\n  note      : "); notes > maxListed {
			t.Fatalf("%d notes", notes)
		}
		if n := strings.Count(got, "\n"); n > 2*rootLines+maxListed*(3*otherLines+12)+20 {
			t.Fatalf("%d lines", n)
		}
		_, others := e.grouped()
		if n := strings.Count(got, "\n  rank      : "); n != min(maxListed, 1+len(others)) {
			t.Fatalf("%d groups are listed of %d", n, 1+len(others))
		}
		if !strings.HasPrefix(got[strings.LastIndex(got, "\n  rank      : "):], "\n  rank      : 0 ") {
			t.Fatalf("the root cause is not the last:\n%s", got)
		}
	})
}

func TestInterruptErrorText(t *testing.T) {
	for killed, want := range []string{
		"stopped by signal 2 (SIGINT)",
		"stopped by signal 2 (SIGINT); 1 worker did not stop by itself and was killed",
		"stopped by signal 2 (SIGINT); 2 workers did not stop by themselves and were killed",
	} {
		if got := (&InterruptError{Signal: syscall.SIGINT, Killed: killed}).Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := (&InterruptError{Signal: syscall.SIGTERM, Cause: errOver}).Error(); got != "the time is over: stopped by signal 15 (SIGTERM)" {
		t.Errorf("%q", got)
	}
}
