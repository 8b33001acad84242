package launcher

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/launcher/spool"
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
			dir := t.TempDir() // an argument cannot be so long
			for name, text := range map[string]string{"out": tt.out, "err": tt.err} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			s.Argv = []string{"/bin/sh", "-c", `cat "$0/out"; cat "$0/err" >&2`, dir}
			s.Workers[0].Env = os.Environ()
			for _, pty := range []bool{false, true} {
				out, errs := newScreen(), newScreen()
				s.Stdout, s.Stderr, s.Spool = out, errs, spool.New()
				s.Pty = func(int) bool { return pty }
				exits(t, start(t, s))
				if out.String() != tt.want || errs.String() != tt.wantErr {
					t.Errorf("pty %t: got %.200q and %.200q", pty, out, errs)
				}
			}
		})
	}
}

func TestOutputIsThereBeforeTheExit(t *testing.T) {
	// A pipe nearly full, no newline at the end, and a daemon that keeps it open; the gang goes on.
	text := strings.Repeat("0123456789abcde\n", readSize/16-1) + "the end"
	for _, out := range []string{"", strings.ReplaceAll(text, "\n", `\n`) + " of out"} {
		testOutputBeforeExit(t, out, text)
	}
}

// testOutputBeforeExit lets a worker write out to stdout, which is a pseudo terminal, and text to stderr.
func testOutputBeforeExit(t *testing.T, out, text string) {
	t.Helper()
	s, con := spec(t, 2)
	s.Pty = func(int) bool { return out != "" }
	s.Argv = []string{"/bin/sh", "-c", `if [ "$RANK" = 0 ]; then exec "$0" "$@"; fi; exec "$0" wait`,
		s.Argv[0], "daemon", "write", out, strings.ReplaceAll(text, "\n", `\n`), "3"}
	g := start(t, s)
	e, _ := nextExit(t, g)
	if e.LocalRank != 0 || e.Code() != 3 {
		t.Fatalf("%+v", e)
	}
	if out != "" {
		con.wait(t, "the end of out", 1) // the daemon may have written to the same line behind it
	}
	con.wait(t, "[0] the end\n", 1) // all is in the queue before the exit is told, and nothing else has to happen
	if len(e.Stderr) != tailLines || e.Stderr[tailLines-1] != "the end" || e.Stderr[0] != "0123456789abcde" {
		t.Errorf("tail %q", e.Stderr)
	}
	daemon := con.pids(t, "daemon", 1)[0]
	if err := syscall.Kill(daemon, syscall.SIGKILL); err != nil { // so that nothing waits for it
		t.Error(err)
	}
	gone(t, daemon) // or the guard might say that it has ended it
}

func TestSyncPassesOnWhatThePipeHolds(t *testing.T) {
	t.Run("pipe", func(t *testing.T) {
		r, w, err := os.Pipe()
		testSync(t, r, w, err, 32<<10)
	})
	t.Run("pty", func(t *testing.T) {
		r, w, err := openPty()
		testSync(t, r, w, err, 8<<10)
	})
}

// testSync writes a text of a length to w before anybody reads r.
func testSync(t *testing.T, r, w *os.File, err error, length int) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }() // open: there is no end of file
	text := strings.Repeat("0123456789abcde\n", length/16) + "the end"
	if _, err := w.WriteString(text); err != nil {
		t.Fatal(err)
	}
	con := newScreen()
	o := newOutput(&Spec{Spool: spool.New(), Stderr: con})
	s := newStream(Stderr, r, o)
	s.onConsole = true
	s.syncing.Store(true)
	if err := r.SetReadDeadline(time.Unix(1, 0)); err != nil { // as sync does, but before the reader reads
		t.Fatal(err)
	}
	go s.run()
	if last := <-s.synced; len(last) != tailLines || last[tailLines-1] != "the end" {
		t.Errorf("last lines %q", last)
	}
	written(o)
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
	if want := []string{"Traceback:", "  boom"}; !slices.Equal(e.Stderr, want) {
		t.Errorf("tail %q, want %q", e.Stderr, want)
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

// A progress bar is on the terminal while its worker goes on, and in a file with its line.
// TestTimestamps: the time at which a line has come stands before its prefix on the console. Files have none.
func TestTimestamps(t *testing.T) {
	s, con := spec(t, 1)
	s.Timestamps, s.Color = true, true
	s.Logs = LogSpec{Dir: t.TempDir(), Tee: StdMap{Default: Both}, StdoutFilters: []string{"one"}}
	s.Argv = []string{"/bin/sh", "-c", `echo one; read x; echo two; printf end`}
	answer, ask, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = answer.Close(), ask.Close() }()
	s.Stdin, s.Workers[0].Env = answer, os.Environ()
	before := time.Now()
	g := start(t, s)
	con.wait(t, "one\n", 1)
	between := time.Now()
	if _, err := ask.WriteString("go on\n"); err != nil {
		t.Fatal(err)
	}
	exits(t, g)
	after := time.Now()
	limits := [][2]time.Time{{before, between}, {between, after}, {between, after}}
	lines := strings.Split(strings.TrimSuffix(con.String(), "\n"), "\n")
	if len(lines) != len(limits) {
		t.Fatalf("%q", lines)
	}
	for i, line := range lines {
		stamp, rest, _ := strings.Cut(line, " ")
		at, err := time.Parse(time.RFC3339Nano, stamp)
		if err != nil || len(stamp) != len("2006-01-02T15:04:05.678901Z") {
			t.Errorf("%q: %v", line, err)
		}
		if from, to := limits[i][0].Truncate(time.Microsecond), limits[i][1]; at.Before(from) || at.After(to) {
			t.Errorf("%q: want a time from %v to %v", line, from, to)
		}
		if want := "\x1b[36m[0]\x1b[0m " + []string{"one", "two", "end"}[i]; rest != want {
			t.Errorf("%q, want %q", rest, want)
		}
	}
	for name, want := range map[string]string{"0/stdout.log": "one\ntwo\nend", "filtered_stdout.log": "[0] one\n"} {
		if got, err := os.ReadFile(filepath.Join(s.Logs.Dir, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
	}
}

func TestLive(t *testing.T) {
	s, con := spec(t, 1)
	s.Argv = []string{"/bin/sh", "-c", `printf '50%%\r'; read x <"$0"; echo done`}
	gate := filepath.Join(t.TempDir(), "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	s.Argv, s.Live = append(s.Argv, gate), true
	g := start(t, s)
	con.wait(t, "[0] 50%\x1b[?7h\r", 1)
	if err := os.WriteFile(gate, []byte("go on\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	exits(t, g)
	if !strings.HasSuffix(con.String(), "\r\x1b[K[0] done\n") {
		t.Errorf("console %q", con)
	}

	s, con = spec(t, 1, "write", `50%\rdone\r\n50%\r`, "", "0")
	exits(t, start(t, s))
	if got, want := con.String(), "[0] 50%\rdone\r\n[0] 50%\r\n"; got != want {
		t.Errorf("not a terminal: %q, want %q", got, want)
	}
}

// A bar is erased when its worker ends, though somebody else still has the pipe.
func TestProgressBarEndsWithItsWorker(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	if _, err := w.WriteString("50%\r"); err != nil {
		t.Fatal(err)
	}
	con := newScreen()
	o := newOutput(&Spec{Spool: spool.New(), Stderr: con, Live: true})
	s := newStream(Stderr, r, o)
	s.onConsole = true
	go s.run()
	if last := s.sync(); !slices.Equal(last, []string{"50%"}) {
		t.Errorf("tail %q", last)
	}
	written(o)
	if got := con.String(); !strings.HasSuffix(got, "50%\x1b[?7h\r\x1b[K") {
		t.Errorf("console %q", got)
	}
	s.close()
}

func TestRunesArriveWhole(t *testing.T) {
	for _, raw := range []bool{false, true} {
		s, con := spec(t, 1)
		s.Argv = []string{"/bin/sh", "-c", // each byte in a read of its own, as far as can be
			`for b in '\342' '\202' '\254' '\n' '\326' '\320' '\n'; do printf "$b" >&2; sleep 0.01; done; exit 1`}
		s.Raw = raw
		e := exits(t, start(t, s))[0]
		want := []string{"€", "\uFFFD\uFFFD"}
		if raw {
			want[1] = "\xd6\xd0" // GBK for the middle
		}
		if got := con.String(); got != "[0] "+want[0]+"\n[0] "+want[1]+"\n" || !slices.Equal(e.Stderr, want) {
			t.Errorf("raw %v: console %q, tail %q", raw, got, e.Stderr)
		}
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
	s.Stdout = w
	for _, e := range exits(t, start(t, s)) {
		if e.Failed() {
			t.Errorf("%+v", e)
		}
	}
	if _, err := s.Spool.To(w, "stdout").Loss(); w.calls.Load() == 0 || err == nil {
		t.Errorf("%d writes, %v", w.calls.Load(), err)
	}
}

func TestFullConsole(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = full.Close() }()
	s, _ := spec(t, 2)
	s.Argv = []string{"/bin/sh", "-c", "yes | head -50000; echo why >&2; exit 3"}
	s.Stdout, s.Stderr, s.Live = full, full, true
	for _, e := range exits(t, start(t, s)) {
		if e.Code() != 3 || !slices.Equal(e.Stderr, []string{"why"}) {
			t.Errorf("%+v", e)
		}
	}
	for _, name := range []string{"stdout", "stderr"} {
		if lost, err := s.Spool.To(full, name).Loss(); lost == 0 || !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%s: %d bytes lost, %v", name, lost, err)
		}
	}
}

func TestNoConsole(t *testing.T) {
	s, _ := spec(t, 1, "write", `one\n`, `two\n`, "0")
	s.Stdout, s.Stderr = nil, nil
	if e := exits(t, start(t, s))[0]; !slices.Equal(e.Stderr, []string{"two"}) {
		t.Errorf("%+v", e)
	}
}

// TestQuestion: a line that does not end is shown when nothing follows, and what follows takes its place.
func TestQuestion(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	screen := newScreen()
	o := newOutput(&Spec{Spool: spool.New(), Live: true, Stdout: screen})
	s := newStream(Stdout, read, o)
	s.onConsole = true
	s.prefix.Store(&prefixes{painted: []byte("> ")})
	go s.run()
	_, err = write.WriteString("line\nname? ")
	screen.wait(t, "> line\n\x1b[K> name? ", 1)
	_, err2 := write.WriteString("hello\n")
	screen.wait(t, "> line\n\x1b[K> name? \r\x1b[K> name? hello\n", 1)
	_, err3 := write.WriteString("again? ")
	screen.wait(t, "again? ", 1)
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	s.sync()
	if err := write.Close(); err != nil {
		t.Fatal(err)
	}
	s.close()
	written(o)
	if got := screen.String(); !strings.HasSuffix(got, "\x1b[K> again? \r\x1b[K> again? \n") {
		t.Errorf("got %q", got)
	}
}
