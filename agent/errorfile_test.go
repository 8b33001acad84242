package agent

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/env/testing/testkit"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestReadReports: whatever lies where an error file should, it is told, and nothing waits for it.
func TestReadReports(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	write(t, path("good"), `{"message":"boom"}`)
	write(t, path("longest"), `{"message":"boom"}`+strings.Repeat(" ", maxErrorFile-18))
	write(t, path("too long"), `{"message":"boom"}`+strings.Repeat(" ", maxErrorFile))
	write(t, path("hole"), "")
	if err := os.Truncate(path("hole"), 1<<40); err != nil {
		testkit.Cannot(t, "no sparse files: %v", err)
	}
	for name, err := range map[string]error{
		"pipe":   syscall.Mkfifo(path("pipe"), 0o600),
		"folder": os.Mkdir(path("folder"), 0o700),
		"link":   os.Symlink("good", path("link")),
		"loop":   os.Symlink("loop", path("loop")),
		"zeroes": os.Symlink("/dev/zero", path("zeroes")),
	} {
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	want := []struct{ name, message, problem string }{
		{"good", "boom", ""},
		{"link", "boom", ""},
		{"longest", "boom", ""},
		{"too long", "boom", "it is longer than 1048576 bytes"},
		{"hole", strings.Repeat("\x00", shownBytes) + "...", "it is longer than 1048576 bytes"},
		{"pipe", "", "it is not a regular file"},
		{"folder", "", "it is not a regular file"},
		{"zeroes", "", "it is not a regular file"},
		{"loop", "", "too many levels of symbolic links"},
		{"good/too", "", "not a directory"},
		{"missing", "", ""},
	}
	var exits []death.Death
	for i := range want {
		exits = append(exits, death.Death{Rank: 10 + i, LocalRank: i})
	}
	reports := readErrorFilesOf(exits, func(local int) string { return path(want[local].name) })
	for i, w := range want {
		r, found := reports[10+i]
		if found != (w.name != "missing") || r.Message != w.message || r.Problem != w.problem || found && r.File != path(w.name) {
			t.Errorf("%s: %t, %+v\nwant message %q, problem %q", w.name, found, r, w.message, w.problem)
		}
	}
}

// TestReadReportsInTime: a file system that hangs costs its reports, not the end of the job.
func TestReadReportsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good := filepath.Join(t.TempDir(), "error.json")
		write(t, good, `{"message":"boom"}`)
		hang, start := make(chan struct{}), time.Now()
		asked := 0
		reports := readErrorFilesOf([]death.Death{{Rank: 4}, {Rank: 5, LocalRank: 1}}, func(local int) string {
			if asked++; asked > 3 { // two names, and the reading of the first
				<-hang
			}
			return good
		})
		if took := time.Since(start); took != errorFileTimeout {
			t.Errorf("took %s, want %s", took, errorFileTimeout)
		}
		info, err := os.Stat(good)
		if err != nil {
			t.Fatal(err)
		}
		want := map[int]ErrorFile{4: {File: good, Message: "boom", Written: info.ModTime(), Document: json.RawMessage(`{"message":"boom"}`)},
			5: {File: good, Problem: "no answer within 5s"}}
		if !reflect.DeepEqual(reports, want) {
			t.Errorf("%+v\nwant %+v", reports, want)
		}
		close(hang)
	})
}

func TestDocument(t *testing.T) {
	talks := exited(1, 3).Death
	talks.At, talks.Stderr = time.Unix(1700000000, 5), []string{"last", "words"}
	crashed := talks
	crashed.ExitCode, crashed.Stderr = -int(syscall.SIGSEGV), nil
	for _, c := range []struct {
		name string
		root death.Death
		file string // the worker's; empty: none
		want string
	}{
		{"torch's", talks, `{"message":{"message":"m","extraInfo":{"timestamp":"17","big":12345678901234567890},"errorCode":1},"more":[1.0]}`,
			`{"message":{"errorCode":3,"extraInfo":{"big":12345678901234567890,"timestamp":"17"},"message":"m"},"more":[1.0]}`},
		{"flat", talks, `{"message":"m","timestamp":17}`, `{"message":{"errorCode":3,"message":"m"},"timestamp":17}`},
		{"a list", talks, `{"message":[1]}`, `{"message":{"errorCode":3,"message":"[1]"}}`},
		{"no file", talks, "", `{"message":{"errorCode":3,"extraInfo":{"py_callstack":"last lines on stderr:\nlast\nwords","timestamp":"1700000000"},` +
			`"message":"rank 1 (local rank 1, pid 101): exit code 3"}}`},
		{"not JSON", talks, "boom", `{"message":{"errorCode":3,"extraInfo":{"py_callstack":"unreadable error file: it is not JSON\nboom\nlast lines on stderr:\nlast\nwords",` +
			`"timestamp":"1700000000"},"message":"rank 1 (local rank 1, pid 101): exit code 3"}}`},
		{"a signal", crashed, "", `{"message":{"errorCode":-11,"extraInfo":{"py_callstack":"Signal 11 (SIGSEGV) received by PID 101","timestamp":"1700000000"},` +
			`"message":"rank 1 (local rank 1, pid 101): signal 11 (SIGSEGV)"}}`},
	} {
		e := WorkerError{Root: c.root}
		if c.file != "" {
			e.ErrorFiles = map[int]ErrorFile{1: parseErrorFile([]byte(c.file))}
		}
		got, err := e.document()
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v\nwant %s", c.name, got, err, c.want)
		}
		if again := parseErrorFile(got); again.Problem != "" {
			t.Errorf("%s: the agent's own file is of no use: %s", c.name, again.Problem)
		}
	}
}

func TestWriteErrorFile(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	write(t, path("old"), "something longer than what comes")
	if err := os.Symlink("old", path("link")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"new", "old", "link"} {
		if err := replaceErrorFile(path(name), []byte("document of "+name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := read(t, path(name)); got != "document of "+name {
			t.Errorf("%s holds %q", name, got)
		}
	}
	if info, err := os.Stat(path("new")); err != nil || info.Mode() != 0o644 {
		t.Errorf("mode %v (%v), want -rw-r--r--", info.Mode(), err)
	}
	if target, err := os.Readlink(path("link")); target != "old" {
		t.Errorf("the link is %q now: %v", target, err)
	}
	if err := syscall.Mkfifo(path("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pipe", "", "no/folder"} {
		if err := replaceErrorFile(path(name), []byte("x")); err == nil {
			t.Errorf("%q was written", name)
		}
	}
	left, err := filepath.Glob(path("*"))
	hidden, _ := filepath.Glob(path(".*.json"))
	if want := []string{path("link"), path("new"), path("old"), path("pipe")}; err != nil || fmt.Sprint(left) != fmt.Sprint(want) || hidden != nil {
		t.Errorf("left: %q and %q, %v", left, hidden, err)
	}
}

// TestErrorFileIsReplaced: whoever reads the error file meanwhile, or finds a full disk, has a whole document.
func TestErrorFileIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "error.json")
	if err := os.WriteFile(path, []byte("before"), 0o444); err != nil {
		t.Fatal(err)
	}
	reader, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	if err := replaceErrorFile(path, []byte("after")); err != nil {
		t.Fatal(err)
	}
	if read, err := io.ReadAll(reader); string(read) != "before" || err != nil {
		t.Errorf("a reader has got %q, %v", read, err)
	}
	if now, err := os.ReadFile(path); string(now) != "after" || err != nil {
		t.Errorf("the file has %q, %v", now, err)
	}
	if names, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(names) != 1 || err != nil {
		t.Errorf("left over: %q, %v", names, err)
	}
}
