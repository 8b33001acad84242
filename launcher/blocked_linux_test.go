package launcher

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/env/testing/testkit"
	"github.com/gorun/gorun/launcher/spool"
)

// floodsAndFails is a gang in which rank 0 writes for ever, and rank 1 fails with a last line.
const floodsAndFails = `if [ $RANK = 0 ]; then exec yes "a line of rank 0"; fi; echo why >&2; exit 3`

// TestBlockedOutputHidesNothing: whatever blocks, console or log file, and be it both: a failure is delivered with its last
// lines, and the gang can be stopped.
func TestBlockedOutputHidesNothing(t *testing.T) {
	for _, c := range []struct {
		name                  string
		stdout, stderr, files bool // block
		pty                   bool
	}{
		{name: "stdout", stdout: true}, {name: "stdout of a pty", stdout: true, pty: true}, {name: "stderr", stderr: true},
		{name: "both", stdout: true, stderr: true}, {name: "files", files: true}, {name: "all", stdout: true, stderr: true, files: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := spec(t, 2)
			s.Argv = []string{"/bin/sh", "-c", floodsAndFails}
			s.Workers[0].Env, s.Workers[1].Env = append(s.Workers[0].Env, os.Environ()...), append(s.Workers[1].Env, os.Environ()...)
			s.Spool, s.Pty = spool.New(), func(int) bool { return c.pty }
			r, w := testkit.Pipe(t)
			if c.stdout {
				s.Stdout = w
			}
			if c.stderr {
				s.Stderr = w
			}
			if c.files {
				s.Warn = nil
				s.Logs = LogSpec{Dir: t.TempDir(), Tee: StdMap{Default: Both}, StdoutFilters: []string{"line"}}
				for _, name := range []string{"0/stdout.log", "1/stderr.log", "filtered_stdout.log"} {
					fifo(t, filepath.Join(s.Logs.Dir, name))
				}
			}
			g := start(t, s)
			e, _ := nextExit(t, g)
			if e.LocalRank != 1 || e.Code() != 3 || !slices.Equal(e.Stderr, []string{"why"}) {
				t.Errorf("%+v", e)
			}
			g.Stop(syscall.SIGTERM)
			if e, _ := nextExit(t, g); e.LocalRank != 0 || e.Signal() != syscall.SIGTERM && e.Signal() != syscall.SIGPIPE {
				t.Errorf("%+v", e)
			}
			if _, more := nextExit(t, g); more {
				t.Error("more exits than workers")
			}
			_ = r.Close() // ends the writes that block
			s.Spool.Drain(spool.Timeouts{}, nil)
		})
	}
}

// fifo makes a log file that blocks at once: nobody reads from it. In the end somebody does, so that nothing is left of who
// waits.
func fifo(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
	})
}

// TestFloodOfOneDelaysNobody: while one worker floods a console that is read slowly, another's line comes soon.
func TestFloodOfOneDelaysNobody(t *testing.T) {
	s, _ := spec(t, 2)
	gate := filepath.Join(t.TempDir(), "gate")
	fifo(t, gate)
	s.Argv = []string{"/bin/sh", "-c", `if [ $RANK = 0 ]; then exec yes "a line of rank 0"; fi; read x <` + gate + `; echo here; echo >` + gate + `; read x <` + gate}
	r, w := testkit.Pipe(t)
	s.Stdout, s.Spool = w, spool.New()
	g := start(t, s)
	first := make([]byte, 1<<20) // rank 0 is under way, and everything is full
	if _, err := io.ReadFull(r, first); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(gate, []byte("go on\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := os.ReadFile(gate); err != nil { // until rank 1 has written
		t.Fatal(err)
	}
	g.workers[1].Load().out.sync()
	const most = 64<<10 + // in the pipe
		2*streamShare + 2*readSize // of rank 0, prefixes included
	rest := make([]byte, most)
	if _, err := io.ReadFull(r, rest); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(rest), "[1] here\n") {
		t.Errorf("the line is not among the next %d bytes", most)
	}
	g.Kill()
	go func() { _, _ = io.Copy(io.Discard, r) }()
	exits(t, g)
	s.Spool.Drain(spool.Timeouts{Still: patience, Total: patience}, nil)
}

// TestLastWordsOfWhoIsStopped: a worker that writes while it is being stopped, more than a pipe holds, comes to its end
// although nobody reads.
func TestLastWordsOfWhoIsStopped(t *testing.T) {
	for name, pty := range map[string]bool{"pipe": false, "pty": true} {
		t.Run(name, func(t *testing.T) { testLastWords(t, pty) })
	}
}

func testLastWords(t *testing.T, pty bool) {
	t.Helper()
	s, _ := spec(t, 1)
	s.Pty = func(int) bool { return pty }
	gate := filepath.Join(t.TempDir(), "gate")
	fifo(t, gate)
	s.Argv = []string{"/bin/sh", "-c", fmt.Sprintf(`trap 'yes words | head -c %d; exit 7' TERM; echo >%s; while :; do sleep 0.01; done`, 400<<10, gate)}
	s.Workers[0].Env = append(s.Workers[0].Env, os.Environ()...)
	r, w := testkit.Pipe(t)
	s.Stdout, s.Spool = w, spool.New()
	g := start(t, s)
	if _, err := os.ReadFile(gate); err != nil {
		t.Fatal(err)
	}
	g.Stop(syscall.SIGTERM)
	if e, _ := nextExit(t, g); e.Code() != 7 {
		t.Errorf("%+v", e)
	}
	_ = r.Close()
	s.Spool.Drain(spool.Timeouts{}, nil)
}
