package launcher

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/launcher/proc"
)

// timed is a Spec with a timer file whose workers run a script of the shell: $0 is the file, and TIMER PID SCOPE sets a
// timer that has run out. warnings get what the job is warned of.
func timed(t *testing.T, n int, script string) (s Spec, con, warnings *screen) {
	t.Helper()
	s, con = spec(t, n)
	s.TimerFile = filepath.Join(t.TempDir(), "timer")
	const timer = `timer() { echo '{"version":1,"pid":'$1',"scope_id":"'$2'","expiration_time":1,"signal":'${3-9}'}' >$0; }; `
	s.Argv = []string{"/bin/sh", "-c", timer + script, s.TimerFile}
	warnings = newScreen()
	s.Warn = func(msg string) { _, _ = fmt.Fprintln(warnings, msg) }
	return s, con, warnings
}

func TestTimerEndsItsProcess(t *testing.T) {
	s, con, warnings := timed(t, 2, `if [ $RANK = 1 ]; then timer $$ step; fi; echo ready; exec sleep 600`)
	g := start(t, s)
	con.wait(t, "[0] ready", 1)
	e, _ := nextExit(t, g)
	if e.LocalRank != 1 || e.Signal != syscall.SIGKILL || e.Stopped || e.Expired == nil ||
		e.Expired.Scope != "step" || e.Expired.Pid != e.Pid || e.Expired.Signal != syscall.SIGKILL || e.Expired.At.IsZero() {
		t.Errorf("%+v: %+v", e, e.Expired)
	}
	if p, ok := proc.Read(g.Pids()[0]); !ok || p.Zombie {
		t.Error("the other worker has ended, too")
	}
	g.Kill()
	if e, _ := nextExit(t, g); e.Expired != nil {
		t.Errorf("the other worker: %+v", e.Expired)
	}
	exits(t, g)
	want := fmt.Sprintf("timer \"step\" of process %d (local rank 1) ran out: it was sent signal 9 (SIGKILL)\n", e.Pid)
	if warnings.String() != want {
		t.Errorf("warnings %q, want %q", warnings, want)
	}
	if _, err := os.Lstat(s.TimerFile); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the timer file: %v", err)
	}
}

// A worker's program may be below a shell: the worker's exit says what that one died of, too.
func TestTimerOfAWorkersChild(t *testing.T) {
	s, con, _ := timed(t, 1, `sleep 600 & echo child $!; timer $! step 15; wait $!; exit 5`)
	g := start(t, s)
	child := con.pids(t, "child", 1)[0]
	e := exits(t, g)[0]
	if e.Code != 5 || e.Expired == nil || e.Expired.Pid != child || e.Expired.Signal != syscall.SIGTERM {
		t.Errorf("%+v: %+v", e, e.Expired)
	}
}

// A daemon has no worker above it any more, but the guard.
func TestTimerOfADaemon(t *testing.T) {
	s, con, warnings := timed(t, 1, "")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s.Argv = []string{exe, "daemon", "wait"}
	g := start(t, s)
	pid := con.pids(t, "daemon", 1)[0]
	con.wait(t, "ready", 2)
	tell(t, s.TimerFile, timerLine(pid, "step", 1, 9))
	gone(t, pid)
	warnings.wait(t, fmt.Sprintf("of process %d ran out", pid), 1)
	g.Kill()
	if e := exits(t, g)[0]; e.Expired != nil {
		t.Errorf("%+v", e.Expired)
	}
}

func TestTimersOfStrangersAreRefused(t *testing.T) {
	s, con, warnings := timed(t, 1, ``)
	s.Argv = []string{"/bin/sh", "-c", "echo ready; exec sleep 600"}
	g := start(t, s)
	con.wait(t, "ready", 1)
	strangers := []int{os.Getpid(), os.Getppid(), 1, g.guard.Pid()}
	for _, pid := range strangers {
		tell(t, s.TimerFile, timerLine(pid, "step", 1, 9))
		warnings.wait(t, fmt.Sprintf("process %d is not set: it is neither a worker nor started by one", pid), 1)
	}
	tell(t, s.TimerFile, timerLine(g.Pids()[0], "step", 1, 9))
	if e := exits(t, g)[0]; e.Expired == nil || e.GuardLost {
		t.Errorf("%+v", e)
	}
}

// A process that has got the pid of one that had a timer is not struck.
func TestTimerIsOfOneProcess(t *testing.T) {
	s, _, _ := timed(t, 1, `exec sleep 600`)
	g := start(t, s)
	w := watchedGang{Gang: g}
	pid := g.Pids()[0]
	born, localRank, err := w.owner(pid)
	if err != nil || localRank != 0 {
		t.Fatal(localRank, err)
	}
	if err := w.signal(timer{timerKey: timerKey{pid: pid}, born: born - 1, signal: 9}); !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
	if err := w.signal(timer{timerKey: timerKey{pid: pid}, born: born, signal: 0}); err != nil {
		t.Error(err)
	}
	g.Kill()
	if e := exits(t, g)[0]; e.Expired != nil || !e.Stopped {
		t.Errorf("%+v", e)
	}
	if _, _, err := w.owner(pid); !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
}

func TestTimerOfAZombie(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s, con, _ := timed(t, 1, `sleep 600 & echo child $!; exec `+exe+` wait`)
	g := start(t, s)
	w, pid := watchedGang{Gang: g}, con.pids(t, "child", 1)[0]
	con.wait(t, "ready", 1) // which waits for no child
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	gone(t, pid)
	p, ok := proc.Read(pid)
	if !ok {
		t.Fatal("it has been waited for")
	}
	if _, _, err := w.owner(pid); !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
	if err := w.signal(timer{timerKey: timerKey{pid: pid}, born: p.StartTicks, signal: 9}); !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
}

func TestTimersSurviveBadWriters(t *testing.T) {
	s, con, warnings := timed(t, 1, `echo ready; exec sleep 600`)
	g := start(t, s)
	con.wait(t, "ready", 1)
	open := writer(t, s.TimerFile) // as long as the gang
	if _, err := open.WriteString(`{"version":1,"pid":`); err != nil {
		t.Fatal(err)
	}
	var flood sync.WaitGroup
	for _, line := range []string{"\n", "{\n", strings.Repeat("[", 4095) + "\n", strings.Repeat("x", 4096)} {
		flood.Go(func() {
			w := writer(t, s.TimerFile)
			for range 200 {
				if _, err := w.WriteString(line); err != nil {
					t.Error(err)
				}
			}
		})
	}
	flood.Wait()
	tell(t, s.TimerFile, timerLine(g.Pids()[0], "step", 1, 9))
	if e := exits(t, g)[0]; e.Expired == nil {
		t.Errorf("%+v", e)
	}
	if n := strings.Count(warnings.String(), "\n"); n > maxComplains+1 {
		t.Errorf("%d warnings", n)
	}
}

func writer(t *testing.T, path string) *os.File {
	t.Helper()
	w, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// tell writes a line as a client does.
func tell(t *testing.T, path, line string) {
	t.Helper()
	w := writer(t, path)
	if _, err := w.WriteString(line); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestTimerFileIsMade(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	left, full := path("left"), path("full")
	if err := syscall.Mkfifo(left, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	used, err := openTimerFile(path("used"))
	if err != nil {
		t.Fatal(err)
	}
	defer used.close()
	for _, tt := range []struct{ path, want string }{
		{path("new"), ""},
		{left, ""},
		{full, "the file exists and is not a FIFO"},
		{path("used"), "another process reads from it"},
		{path("nowhere/timer"), "no such file or directory"},
		{path(strings.Repeat("x", 300)), "file name too long"},
	} {
		f, err := openTimerFile(tt.path)
		if err != nil {
			if want := "cannot create the workers' timer file " + tt.path + " (TORCHELASTIC_TIMER_FILE): " + tt.want; err.Error() != want || tt.want == "" {
				t.Errorf("%v, want %s", err, want)
			}
			continue
		}
		info, err := os.Lstat(tt.path)
		if err != nil || info.Mode() != os.ModeNamedPipe|0o600 || tt.want != "" {
			t.Errorf("%s: %v %v, want %q", tt.path, info.Mode(), err, tt.want)
		}
		f.close()
		if _, err := os.Lstat(tt.path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", tt.path, err)
		}
	}
	if b, err := os.ReadFile(full); err != nil || string(b) != "mine" {
		t.Errorf("%q %v", b, err)
	}
}

func TestTimerFileGoesWithAFailedStart(t *testing.T) {
	s, _, _ := timed(t, 1, "")
	s.Argv = []string{"/nowhere/x"}
	if _, err := Start(t.Context(), s); err == nil {
		t.Fatal("started")
	}
	if _, err := os.Lstat(s.TimerFile); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the timer file: %v", err)
	}
}

// A timer that is far away keeps nothing from ending.
func TestTimerThatDoesNotRunOut(t *testing.T) {
	s, _, warnings := timed(t, 1, "")
	s.Argv = []string{"/bin/sh", "-c", `echo '{"version":1,"pid":'$$',"scope_id":"","expiration_time":9e9,"signal":9}' >$0; exit 3`, s.TimerFile}
	begin := time.Now()
	if e := exits(t, start(t, s))[0]; e.Code != 3 || e.Expired != nil || warnings.String() != "" {
		t.Errorf("%+v %s", e, warnings)
	}
	t.Logf("ended after %v", time.Since(begin))
}
