package launcher

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestConsoleBytes(t *testing.T) {
	long := strings.Repeat("x", maxLine)
	tests := []struct{ name, out, err, want, wantErr string }{
		{"lines", "one\ntwo\n", "", "[0] one\n[0] two\n", ""},
		{"no newline at the end", "one\ntwo", "three", "[0] one\n[0] two\n", "[0] three\n"},
		{"empty lines", "\n\n", "", "[0] \n[0] \n", ""},
		{"nothing", "", "", "", ""},
		{"any bytes", "a\rb\x00\xff\xfe\r\n", "\xc3", "[0] a\rb\x00\uFFFD\uFFFD\r\n", "[0] \uFFFD\n"},
		{"whole line of 1 MiB", long + "\n", "", "[0] " + long + "\n", ""},
		{"longer", long + "yz\nend", "", "[0] " + long + "\n[0] yz\n[0] end\n", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := spec(t, 1)
			out, errs := newScreen(), newScreen()
			s.Stdout, s.Stderr = out, errs
			dir := t.TempDir() // an argument cannot be so long
			for name, text := range map[string]string{"out": tt.out, "err": tt.err} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			s.Argv, s.Dir = []string{"/bin/sh", "-c", "cat out; cat err >&2"}, dir
			s.Workers[0].Env = os.Environ()
			exits(t, start(t, s))
			if out.String() != tt.want || errs.String() != tt.wantErr {
				t.Errorf("got %.200q and %.200q", out, errs)
			}
		})
	}
}

func TestOutputIsThereBeforeTheExit(t *testing.T) {
	// A pipe nearly full, no newline at the end, and a daemon that keeps it open; the gang goes on.
	text := strings.Repeat("0123456789abcde\n", readSize/16-1) + "the end"
	s, con := spec(t, 2)
	s.Argv = []string{"/bin/sh", "-c", `if [ "$RANK" = 0 ]; then exec "$0" "$@"; fi; exec "$0" wait`,
		s.Argv[0], "daemon", "write", "", strings.ReplaceAll(text, "\n", `\n`), "3"}
	g := start(t, s)
	e, _ := nextExit(t, g)
	if e.LocalRank != 0 || e.Code != 3 {
		t.Fatalf("%+v", e)
	}
	if !strings.Contains(con.String(), "[0] the end\n") {
		t.Error("the last line is not on the console")
	}
	if len(e.Tail) != tailLines || e.Tail[tailLines-1] != "the end" || e.Tail[0] != "0123456789abcde" {
		t.Errorf("tail %q", e.Tail)
	}
}

func TestSyncPassesOnWhatThePipeHolds(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }() // open: there is no end of file
	text := strings.Repeat("0123456789abcde\n", 2048) + "the end"
	if _, err := w.WriteString(text); err != nil {
		t.Fatal(err)
	}
	con := newScreen()
	s := newStream(Stderr, r, streamRoute{console: true}, newOutput(&Spec{Stderr: con}))
	if err := r.SetReadDeadline(time.Unix(1, 0)); err != nil { // as sync does, but before the reader reads
		t.Fatal(err)
	}
	go s.run()
	if last := <-s.synced; len(last) != tailLines || last[tailLines-1] != "the end" {
		t.Errorf("last lines %q", last)
	}
	if got := con.String(); got != text+"\n" {
		t.Errorf("%d bytes on the console, want %d", len(got), len(text)+1)
	}
	if _, err := w.WriteString("more\n"); err != nil { // the reader goes on
		t.Fatal(err)
	}
	if last := s.sync(); last[tailLines-1] != "more" {
		t.Errorf("last lines %q", last)
	}
	s.close()
}

func TestTailOfTheExit(t *testing.T) {
	s, _ := spec(t, 1, "write", `not this\n`, `Traceback:\n  boom`, "1")
	e := exits(t, start(t, s))[0]
	if want := []string{"Traceback:", "  boom"}; !slices.Equal(e.Tail, want) {
		t.Errorf("tail %q, want %q", e.Tail, want)
	}
}

func TestLinesOfManyWorkersNeverMix(t *testing.T) {
	const workers, count = 4, 5000
	s, con := spec(t, workers)
	s.Argv = []string{"/bin/sh", "-c",
		`i=0; while [ $i -lt 5000 ]; do echo "out $RANK $i ........................"; echo "err $RANK $i ........................" >&2; i=$((i+1)); done`}
	exits(t, start(t, s))
	next := map[string]int{} // per rank and stream
	for line := range strings.Lines(con.String()) {
		var prefixed, rank, i int
		var stream, dots string
		if _, err := fmt.Sscanf(line, "[%d] %s %d %d %s\n", &prefixed, &stream, &rank, &i, &dots); err != nil ||
			prefixed != rank || len(dots) != 24 {
			t.Fatalf("line %q: %v", line, err)
		}
		key := stream + strconv.Itoa(rank)
		if next[key] != i {
			t.Fatalf("line %q, want number %d", line, next[key])
		}
		next[key]++
	}
	if len(next) != 2*workers {
		t.Errorf("streams %v", next)
	}
	for key, n := range next {
		if n != count {
			t.Errorf("%s: %d lines, want %d", key, n, count)
		}
	}
}

func TestColorAndMute(t *testing.T) {
	s, con := spec(t, 2, "write", `hello\n`, "", "0")
	s.Color = true
	s.Workers[1].Mute = true
	exits(t, start(t, s))
	if got, want := con.String(), "\x1b[36m[0]\x1b[0m hello\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

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
	// Workers find a place for their error files; a second start appends.
	if _, err := os.Stat(filepath.Dir(ErrorFile(AttemptDir(run, 0), 3))); err != nil {
		t.Error(err)
	}
	exits(t, start(t, s))
	read()
	if got := files["attempt_0/0/stderr.log"]; got != "ee" {
		t.Errorf("after a second start stderr.log has %q", got)
	}
}

func TestFullDisk(t *testing.T) {
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

type brokenWriter struct{ calls atomic.Int32 }

func (w *brokenWriter) Write([]byte) (int, error) {
	w.calls.Add(1)
	return 0, errors.New("no space")
}

func TestBrokenConsole(t *testing.T) {
	s, _ := spec(t, 3, "write", `one\n`, "", "0")
	w := &brokenWriter{}
	var warnings atomic.Int32
	s.Stdout, s.Warn = w, func(string) { warnings.Add(1) }
	for _, e := range exits(t, start(t, s)) {
		if e.Failed() {
			t.Errorf("%+v", e)
		}
	}
	if w.calls.Load() != 3 || warnings.Load() != 1 {
		t.Errorf("%d writes, %d warnings", w.calls.Load(), warnings.Load())
	}
}

func TestNoConsole(t *testing.T) {
	s, _ := spec(t, 1, "write", `one\n`, `two\n`, "0")
	s.Stdout, s.Stderr = nil, nil
	if e := exits(t, start(t, s))[0]; !slices.Equal(e.Tail, []string{"two"}) {
		t.Errorf("%+v", e)
	}
}

func TestFileFailureInTheMiddleLosesNothing(t *testing.T) {
	var out bytes.Buffer
	s := newStream(Stdout, nil, streamRoute{file: &fullAfter{room: 2}}, newOutput(&Spec{Stdout: &out}))
	s.prefix = []byte("> ")
	s.take([]byte("a\n"))
	s.take([]byte("b\nc\n"))
	s.take([]byte("d"))
	s.end()
	if got := out.String(); got != "> b\n> c\n> d\n" {
		t.Errorf("console %q", got)
	}
}

// fullAfter is a file on a disk with room for so many bytes.
type fullAfter struct{ room int }

func (f *fullAfter) Write(b []byte) (int, error) {
	n := min(f.room, len(b))
	f.room -= n
	if n < len(b) {
		return n, errors.New("no space left on device")
	}
	return n, nil
}

func (f *fullAfter) Close() error { return nil }
