package launcher

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/gorun/gorun/launcher/spool"
)

func TestLogFiles(t *testing.T) {
	run, err := RunDir(filepath.Join(t.TempDir(), "new"), "job/7")
	if err != nil {
		t.Fatal(err)
	}
	if name := filepath.Base(run); !strings.HasPrefix(name, "job_7_") || name == "job_7_" {
		t.Errorf("run directory %s", run)
	}
	parse := func(s string) StdMap {
		m, err := ParseStd(s)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	s, con := spec(t, 4, "write", `o\r\x00\xff`, `e`, "0")
	s.Logs = LogSpec{Dir: AttemptDir(run, 0), Redirect: parse("0:3,1:1"), Tee: parse("1:2,2:1")}
	exits(t, start(t, s))
	files := map[string]string{}
	read := func() {
		t.Helper()
		paths, err := filepath.Glob(filepath.Join(run, "*", "*", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			files[strings.TrimPrefix(path, run+"/")] = string(b)
		}
	}
	read()
	want := map[string]string{
		"attempt_0/0/stdout.log": "o\r\x00\xff", "attempt_0/0/stderr.log": "e",
		"attempt_0/1/stdout.log": "o\r\x00\xff", "attempt_0/1/stderr.log": "e",
		"attempt_0/2/stdout.log": "o\r\x00\xff",
	}
	if fmt.Sprint(files) != fmt.Sprint(want) {
		t.Errorf("files %q, want %q", files, want)
	}
	console := strings.Split(strings.TrimSuffix(con.String(), "\n"), "\n")
	slices.Sort(console)
	if want := []string{"[1] e", "[2] e", "[2] o\r\x00\uFFFD", "[3] e", "[3] o\r\x00\uFFFD"}; !slices.Equal(console, want) {
		t.Errorf("console %q, want %q", console, want)
	}
	exits(t, start(t, s))
	read()
	if got := files["attempt_0/0/stderr.log"]; got != "ee" {
		t.Errorf("after a second start stderr.log has %q", got)
	}
}

// contents reads the files of dir and below; the keys are their paths in it.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, dir+"/")] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestFilters(t *testing.T) {
	dir := t.TempDir()
	s, con := spec(t, 3, "write", `loss 1\n\nother\nLoss\nval \xff loss\r\nthe acc`, `loss\nWarning: \n`, "0")
	s.Color = true
	s.Workers[1].Mute = true
	s.Logs = LogSpec{Dir: dir, Redirect: StdMap{Ranks: map[int]Std{0: Both}}, Tee: StdMap{Ranks: map[int]Std{2: Stdout}},
		StdoutFilters: []string{"loss", "acc"}, StderrFilters: []string{"Warn"}}
	for range 2 { // a file that is there is appended to
		exits(t, start(t, s))
	}
	files := contents(t, dir)
	for name, want := range map[string][]string{
		"filtered_stdout.log": {"[%d] loss 1\n", "[%d] the acc\n", "[%d] val \xff loss\r\n"},
		"filtered_stderr.log": {"[%d] Warning: \n"},
	} {
		var lines []string
		for rank := range 3 {
			for _, line := range want {
				lines = append(lines, fmt.Sprintf(line, rank), fmt.Sprintf(line, rank))
			}
		}
		slices.Sort(lines)
		got := slices.Sorted(strings.Lines(files[name]))
		if !slices.Equal(got, lines) {
			t.Errorf("%s has %q, want %q", name, got, lines)
		}
	}
	if got := con.String(); strings.Contains(got, "[0]") || strings.Contains(got, "[1]") || strings.Count(got, "the acc") != 2 {
		t.Errorf("console %q", got)
	}
}

// Without a directory there are no files: what is redirected is discarded, or shown; what is teed is shown.
func TestDiscard(t *testing.T) {
	for _, discard := range []bool{true, false} {
		s, con := spec(t, 2, "write", `out\n`, `loss\n`, "0")
		s.Logs = LogSpec{Discard: discard, Redirect: StdMap{Default: Both}, Tee: StdMap{Ranks: map[int]Std{1: Stdout}},
			StderrFilters: []string{"loss"}}
		for _, e := range exits(t, start(t, s)) {
			if !slices.Equal(e.Stderr, []string{"loss"}) {
				t.Errorf("tail %q", e.Stderr)
			}
		}
		want := []string{"[0] loss\n", "[0] out\n", "[1] loss\n", "[1] out\n"}
		if discard {
			want = []string{"[1] out\n"}
		}
		if got := slices.Sorted(strings.Lines(con.String())); !slices.Equal(got, want) {
			t.Errorf("discard %v: console %q, want %q", discard, got, want)
		}
	}
}

func TestTeeAndRedirect(t *testing.T) {
	s, con := spec(t, 2, "write", `out\n`, "", "0")
	s.Logs = LogSpec{Dir: t.TempDir(), Redirect: StdMap{Default: Both}, Tee: StdMap{Ranks: map[int]Std{1: Both}}}
	exits(t, start(t, s))
	files := contents(t, s.Logs.Dir)
	if con.String() != "[1] out\n" || files["0/stdout.log"] != "out\n" || files["1/stdout.log"] != "out\n" {
		t.Errorf("console %q, files %q", con, files)
	}
}

func TestLogFilesOfMaxSize(t *testing.T) {
	const size, count = 1000, 2000
	s, _ := spec(t, 2)
	s.Argv = []string{"/bin/sh", "-c", "seq 2000"}
	s.Logs = LogSpec{Dir: t.TempDir(), Redirect: StdMap{Default: Both}, StdoutFilters: []string{"1"}, MaxSize: size}
	exits(t, start(t, s))
	for name, text := range contents(t, s.Logs.Dir) {
		if strings.HasPrefix(name, "filtered_stdout") && len(text) > size+len("[0] 2000") {
			t.Errorf("%s has %d bytes", name, len(text))
		}
	}
	s.Logs.Keep = 2
	exits(t, start(t, s))
	names, parts := stored(t, filepath.Join(s.Logs.Dir, "0"))
	if len(names) != 3 {
		t.Errorf("files %v, want the newest and two put aside", names)
	}
	var lines []string
	for _, part := range parts {
		if len(part) > size+len("2000") {
			t.Errorf("a file of %d bytes", len(part))
		}
		lines = append(lines, strings.Fields(string(part))...)
	}
	for i, line := range lines {
		if want := fmt.Sprint(count - len(lines) + 1 + i); line != want {
			t.Fatalf("line %q, want %q", line, want)
		}
	}
}

func TestLogFileThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "0"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/full", filepath.Join(dir, "0", "stdout.log")); err != nil {
		t.Fatal(err)
	}
	s, con := spec(t, 1, "write", `one\ntwo\n`, "", "0")
	var warnings atomic.Int32
	s.Warn = func(string) { warnings.Add(1) }
	s.Logs = LogSpec{Dir: dir, Redirect: StdMap{Default: Stdout}}
	if e := exits(t, start(t, s))[0]; e.Failed() {
		t.Errorf("%+v", e)
	}
	if warnings.Load() != 1 || con.String() != "[0] one\n[0] two\n" {
		t.Errorf("%d warnings, console %q", warnings.Load(), con)
	}
}

func TestLogDirectoryThatCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if dir, err := RunDir(file, "job"); err == nil {
		t.Errorf("made %s", dir)
	}
	s, con := spec(t, 1, "write", `one\n`, "", "0")
	var warned atomic.Bool
	s.Warn = func(string) { warned.Store(true) }
	s.Logs = LogSpec{Dir: file, Redirect: StdMap{Default: Both}}
	exits(t, start(t, s))
	if !warned.Load() || con.String() != "[0] one\n" {
		t.Errorf("warned %v, console %q", warned.Load(), con)
	}
}

func TestFileFailureInTheMiddleLosesNothing(t *testing.T) {
	var out bytes.Buffer
	o := newOutput(&Spec{Spool: spool.New(), Stdout: &out})
	s := newStream(Stdout, nil, o)
	s.prefix.Store(&prefixes{painted: []byte("> ")})
	s.setFile(opened(o, &fullAfter{room: 2}))
	for _, text := range []string{"a\n", "b\nc\n", "d"} {
		s.take([]byte(text))
		written(o)
	}
	s.end()
	written(o)
	if got := out.String(); got != "> b\n> c\n> d\n" {
		t.Errorf("console %q", got)
	}
}

func TestFilterThatFails(t *testing.T) {
	for _, shown := range []bool{true, false} {
		var out bytes.Buffer
		var warnings []string
		o := newOutput(&Spec{Spool: spool.New(), Stdout: &out, Warn: func(msg string) { warnings = append(warnings, msg) }})
		f := &filter{texts: [][]byte{[]byte("x")}, file: opened(o, &fullAfter{room: 5})}
		f.users.Store(1)
		s := newStream(Stdout, nil, o)
		s.onConsole = shown
		s.setFilter(f)
		s.prefix.Store(&prefixes{[]byte("> "), []byte("> ")})
		for _, text := range []string{"x1\nb\n", "x2\n", "x3\nc\n"} {
			s.take([]byte(text))
			written(o)
		}
		s.end()
		written(o)
		want := "> x2\n> x3\n" // x1 is in the file
		if shown {
			want = "> x1\n> b\n> x2\n> x3\n> c\n" // once
		}
		if out.String() != want || len(warnings) != 1 {
			t.Errorf("shown %v: console %q, warnings %q", shown, out.String(), warnings)
		}
	}
}

func TestEachCauseIsToldOnce(t *testing.T) {
	var told []string
	f := &failures{warn: func(format string, args ...any) { told = append(told, fmt.Sprintf(format, args...)) }}
	for _, err := range []error{
		&os.PathError{Op: "write", Path: "a", Err: syscall.ENOSPC}, &os.PathError{Op: "write", Path: "b", Err: syscall.ENOSPC},
		&os.LinkError{Op: "rename", Old: "a", New: "b", Err: syscall.EACCES}, &os.PathError{Op: "open", Path: "c", Err: syscall.EACCES},
	} {
		f.add("x", err)
	}
	if want := []string{"x: write a: no space left on device", "x: rename a b: permission denied"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

// opened is a log file that is there already.
func opened(o *output, file io.WriteCloser) *spool.Writer {
	return o.spec.Spool.Open(spool.File{
		Open:     func() (io.WriteCloser, error) { return file, nil },
		Failed:   func(err error) { o.failures.add(fileFailed, err) },
		Unclosed: func(err error) { o.failures.add("unclosed", err) },
	})
}

// fullAfter is a file on a disk with room for so many bytes.
type fullAfter struct {
	room   int
	closed bool
}

func (f *fullAfter) Write(b []byte) (int, error) {
	if f.closed {
		panic("written after its Close")
	}
	n := min(f.room, len(b))
	f.room -= n
	if n < len(b) {
		return n, errors.New("no space left on device")
	}
	return n, nil
}

func (f *fullAfter) Close() error {
	f.closed = true
	return nil
}
