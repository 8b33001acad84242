package launcher

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/env/proc"
	"github.com/gorun/gorun/launcher/guard"
	"github.com/gorun/gorun/launcher/spool"
)

func TestExitsAreDeliveredOnceEach(t *testing.T) {
	s, _ := spec(t, 5, "rank")
	for i := range s.Workers {
		s.Workers[i].Rank += 40
	}
	all := exits(t, start(t, s))
	slices.SortFunc(all, func(a, b death.Death) int { return a.LocalRank - b.LocalRank })
	if len(all) != 5 {
		t.Fatalf("%d exits, want 5: %v", len(all), all)
	}
	for i, e := range all {
		if e.LocalRank != i || e.Rank != 40+i || e.Code() != i || e.Failed() != (i > 0) || e.Pid == 0 ||
			e.Signal() != 0 || e.Stopped || e.Cause == death.GuardLost || e.At.IsZero() {
			t.Errorf("exit %d: %+v", i, e)
		}
	}
}

func TestExitBySignal(t *testing.T) {
	s, _ := spec(t, 1, "signal", "9")
	e := exits(t, start(t, s))[0]
	if e.Code() != 137 || e.Signal() != syscall.SIGKILL || !e.Failed() || e.Stopped || e.OutOfMemory || e.String() != "signal 9 (SIGKILL)" {
		t.Errorf("%+v: %v", e, e)
	}
}

func TestFirstFailureIsDeliveredWhileOthersRun(t *testing.T) {
	s, con := spec(t, 2, "wait")
	g := start(t, s)
	con.wait(t, "ready", 2)
	if err := syscall.Kill(g.Pids()[1], syscall.SIGSEGV); err != nil {
		t.Fatal(err)
	}
	e, _ := nextExit(t, g)
	if e.LocalRank != 1 || !e.Failed() || e.Stopped {
		t.Errorf("first exit %+v", e)
	}
	g.Kill()
	e, _ = nextExit(t, g)
	if e.LocalRank != 0 || !e.Stopped || e.Code() != 137 {
		t.Errorf("second exit %+v", e)
	}
	if more, ok := nextExit(t, g); ok {
		t.Errorf("third exit %+v", more)
	}
}

func TestWhatAWorkerIsGiven(t *testing.T) {
	// A descriptor that this process leaks must not reach the workers.
	leak, err := syscall.Open("/dev/null", syscall.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Close(leak) }()
	args := []string{"", "I am 6' tall", "a\nb", "\xff\xfe", `"`, "--nnodes=9"}
	s, con := spec(t, 1, append([]string{"look"}, args...)...)
	t.Chdir(t.TempDir())
	s.Workers[0].Env = []string{"LAUNCHER_TEST_WORKER=1", "BYTES=\xff=\x01"}
	exits(t, start(t, s))
	for _, want := range []string{"fds=[0 1 2]", "nonblocking=false", "leadsGroup=true", "inGuardsSession=true", "stdin=/dev/null",
		`args=["" "I am 6' tall" "a\nb" "\xff\xfe" "\"" "--nnodes=9"]`,
		`env=["LAUNCHER_TEST_WORKER=1" "BYTES=\xff=\x01"]`, "wd=" + os.Getenv("PWD"), "ignored=falsefalse"} {
		if !strings.Contains(con.String(), want) {
			t.Errorf("no %s in %s", want, con)
		}
	}
}

func TestRelativeProgram(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Dir(exe))
	s, _ := spec(t, 1, "exit", "3")
	s.Argv[0] = "./" + filepath.Base(exe)
	if e := exits(t, start(t, s))[0]; e.Code() != 3 {
		t.Errorf("%+v", e)
	}
}

func TestStartFailures(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	notFound := func(err error) bool { _, ok := errors.AsType[*NotFoundError](err); return ok }
	notExecutable := func(err error) bool { _, ok := errors.AsType[*NotExecutableError](err); return ok }
	plain := func(err error) bool { return !notFound(err) && !notExecutable(err) }
	tests := []struct {
		name string
		spec Spec
		is   func(error) bool
		want string
	}{
		{"missing", Spec{Argv: []string{"/nowhere/x"}, Workers: workersOf(3)}, notFound, "/nowhere/x: no such program"},
		{"mode", Spec{Argv: []string{file("mode", "", 0o644)}, Workers: workersOf(3)}, notExecutable, "chmod +x"},
		{"format", Spec{Argv: []string{file("format", "hello", 0o755)}, Workers: workersOf(1)}, notExecutable, "#!"},
		{"interpreter", Spec{Argv: []string{file("interp", "#!/nowhere/sh\n", 0o755)}, Workers: workersOf(1)}, notExecutable, "interpreter"},
		{"too long", Spec{Argv: []string{"/bin/sh", strings.Repeat("x", 1<<20)}, Workers: workersOf(1)}, notExecutable, "too long"},
		{"NUL in argument", Spec{Argv: []string{"/bin/sh", "a\x00"}, Workers: workersOf(1)}, plain, "NUL"},
		{"NUL in environment", Spec{Argv: []string{"/bin/sh"}, Workers: []WorkerSpec{{Env: []string{"TOKEN=se\x00cret"}}}}, plain, `"TOKEN" has a NUL`},
		{"no worker", Spec{Argv: []string{"/bin/sh"}}, plain, "at least one worker"},
		{"no program", Spec{Workers: []WorkerSpec{{Argv: []string{"/bin/sh"}}, {}}}, plain, "local rank 1 has no program"},
		{"NUL in own argument", Spec{Workers: []WorkerSpec{{Argv: []string{"/bin/sh", "a\x00"}}}}, plain, "NUL"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.spec.Spool = spool.New()
			g, err := Start(t.Context(), tt.spec)
			if err == nil || g != nil {
				t.Fatalf("started: %v", g)
			}
			if !tt.is(err) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") ||
				strings.Contains(err.Error(), "cret") {
				t.Errorf("error %q, want %q in it", err, tt.want)
			}
		})
	}
}

func TestStartCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("changed my mind")
	cancel(why)
	s, _ := spec(t, 2, "wait")
	s.TempDir = t.TempDir()
	if g, err := Start(ctx, s); !errors.Is(err, why) {
		t.Fatalf("got %v, %v", g, err)
	}
	if _, err := os.Stat(s.TempDir); err != nil {
		t.Errorf("the program is gone, though this process lives: %v", err)
	}
	if list := children(t); len(list) > 0 {
		t.Errorf("children left: %+v", list)
	}
}

func TestRepeatedStartsLeakNothing(t *testing.T) {
	cycle := func() {
		s, con := spec(t, 2, "wait")
		g := start(t, s)
		con.wait(t, "ready", 2)
		g.Stop(syscall.SIGTERM)
		if n := len(exits(t, g)); n != 2 {
			t.Fatalf("%d exits", n)
		}
		if _, err := Start(t.Context(), Spec{Argv: []string{"/nowhere"}, Workers: workersOf(2), Spool: spool.New()}); err == nil {
			t.Fatal("started /nowhere")
		}
	}
	cycle() // opens what the runtime keeps
	before := openFiles(t)
	for range 3 {
		cycle()
	}
	if after := openFiles(t); !slices.Equal(before, after) {
		t.Errorf("open files before %v, after %v", before, after)
	}
	if list := children(t); len(list) > 0 {
		t.Errorf("children left: %+v", list)
	}
}

func openFiles(t *testing.T) []string {
	t.Helper()
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	var open []string
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil { // not the one that lists
			open = append(open, filepath.Base(link)+":"+target)
		}
	}
	return open
}

// children lists the child processes of this one.
func children(t *testing.T) []proc.Process {
	t.Helper()
	return proc.Descendants(proc.All(), func(p proc.Process) bool { return p.Parent == os.Getpid() })
}

func TestGuardStartedAhead(t *testing.T) {
	ahead, err := guard.Start(100)
	if err != nil {
		t.Fatal(err)
	}
	s, _ := spec(t, 2, "exit", "0")
	s.Guard = ahead
	for attempt := range 3 { // one gang after the other has it
		g := start(t, s)
		if attempt == 0 { // it is taken
			other := start(t, s)
			if other.guard.Load() == ahead {
				t.Error("two gangs have one guard")
			}
			exits(t, other)
		}
		if g.guard.Load() != ahead {
			t.Errorf("attempt %d: guard %d, started ahead %d", attempt, g.guard.Load().Pid(), ahead.Pid())
		}
		exits(t, g)
	}
	ahead.Close()
	if list := children(t); len(list) > 0 {
		t.Errorf("children left: %+v", list)
	}
}

func TestSignalPassesOn(t *testing.T) {
	s, con := spec(t, 2, "usr1")
	g := start(t, s)
	con.wait(t, "ready", 2)
	g.Signal(syscall.SIGUSR1)
	for _, e := range exits(t, g) {
		if e.Code() != 7 || e.Stopped {
			t.Errorf("%+v", e)
		}
	}
}

func TestStdin(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s, con := spec(t, 2, "wait")
	s.Argv = []string{"/bin/cat"}
	s.Stdin = read
	g := start(t, s)
	_ = read.Close()
	if e := <-g.Exits(); e.LocalRank != 1 { // it has read to the end of /dev/null
		t.Errorf("%+v", e)
	}
	_, err = write.WriteString("for the first\n")
	if err := errors.Join(err, write.Close()); err != nil {
		t.Fatal(err)
	}
	exits(t, g)
	if got := con.String(); got != "[0] for the first\n" {
		t.Errorf("got %q", got)
	}
}
