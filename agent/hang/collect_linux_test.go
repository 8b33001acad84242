package hang

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/env/proc"
	"github.com/gorun/gorun/env/progress"
	"github.com/gorun/gorun/env/testing/testkit"
)

// TestWaitingInALine: a thread waits for other ranks, too, if the line where it is calls wait, a method that has no frame.
func TestWaitingInALine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "train.py")
	if err := os.WriteFile(file, []byte("load()\nwork.wait()\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]bool{"1": false, "2": true, "3": false, "4": false} {
		if got := areWaiting(os.Getpid(), []frame{{"<module>", file, line}, {"f", file, "2"}}); got != want {
			t.Errorf("line %s: %t, want %t", line, got, want)
		}
	}
}

// startWorker starts a shell in a process group of its own, and waits until it has touched its file.
func startWorker(t *testing.T, w Worker, script string) (pid int) {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	cmd.Env = append(os.Environ(), "GORUN_PROGRESS_FILE="+w.File)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	for begun := time.Now(); Stamp(w.File).Equal(w.Since); time.Sleep(5 * time.Millisecond) {
		if time.Since(begun) > patience {
			t.Fatal("it does not start")
		}
	}
	return cmd.Process.Pid
}

// TestCollect: workers of all kinds are described, and none is harmed; files are replaced, whatever they are.
func TestCollect(t *testing.T) {
	workers := newWorkers(t, 4)
	for i, script := range []string{
		`touch $GORUN_PROGRESS_FILE; exec sleep 100`,
		`touch $GORUN_PROGRESS_FILE; kill -STOP $$`,
		`trap 'echo at the top >>$GORUN_PROGRESS_FILE.stacks' USR1; >$GORUN_PROGRESS_FILE.stacks; touch $GORUN_PROGRESS_FILE; while :; do sleep 0.01; done`,
		`>$GORUN_PROGRESS_FILE.stacks; touch $GORUN_PROGRESS_FILE; while :; do :; done`, // which SIGUSR1 would kill
	} {
		workers[i].Pid = startWorker(t, workers[i], script)
	}
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) { // the second one stops after it has touched its file
		if p, ok := proc.Read(workers[1].Pid); ok && p.Suspended {
			break
		}
		if time.Since(begun) > patience {
			t.Fatal("it does not stop")
		}
	}
	s, err := progress.Serve(workers[0].File, func(stacks bool) *progress.Status {
		return &progress.Status{Rank: 10, Activity: "its last call was Barrier #3", Stacks: "goroutine 1 [sleep]:\nmain.step()\n\t/src/train.go:7 +0x1d\n",
			Flights: []json.RawMessage{[]byte(`{"rank":10,"group":[10,11],"collectives":[{"seq":3,"call":"Barrier","state":"done"}]}`)}}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	dir, precious := t.TempDir(), filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(precious, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "1"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(precious, filepath.Join(dir, "1", StacksFile)); err != nil {
		t.Fatal(err)
	}
	want := []struct {
		doing string
		texts []string
	}{
		{"it was in main.step (train.go:7)", []string{"==== Stacks of goroutines", "its last call was Barrier #3", "==== Threads, as the kernel sees them\nprocess "}},
		{"it was stopped by a signal (state T (stopped))", []string{"rank 11 (local rank 1)"}},
		{"", []string{"==== Stacks that it wrote on a signal\nat the top\n"}},
		{"it was running (state R (running))", []string{"it has created the file for its stacks, and does not handle the signal"}},
	}
	check := func() (problems []string) {
		wrong := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
		report, err := Collect(t.Context(), workers, dir)
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range want {
			text, err := os.ReadFile(filepath.Join(dir, workers[i].File[len(workers[i].File)-1:], StacksFile))
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range c.texts {
				if !strings.Contains(string(text), part) {
					wrong("worker %d: want %q in:\n%s", i, part, text)
				}
			}
			if c.doing != "" && report.Doing[i] != c.doing {
				wrong("worker %d: %q, want %q", i, report.Doing[i], c.doing)
			}
			if err := syscall.Kill(workers[i].Pid, 0); err != nil {
				t.Fatalf("worker %d has not survived: %v", i, err)
			}
		}
		if text, err := os.ReadFile(filepath.Join(dir, FlightsFile)); err != nil || !strings.Contains(string(text), "3  Barrier\n") {
			wrong("%s, %v", text, err)
		}
		return problems
	}
	begun := time.Now()
	for problems := check(); len(problems) > 0; problems = check() { // on a busy machine, a worker may answer too late
		if time.Since(begun) > patience {
			t.Fatal(strings.Join(problems, "\n"))
		}
	}
	if text, _ := os.ReadFile(precious); string(text) != "x" {
		t.Errorf("a link was followed: %q", text)
	}
	if _, err := Collect(t.Context(), workers[1:2], filepath.Join(precious, "below a file")); err == nil {
		t.Error("written where nothing can be")
	}
}

// TestActivity: only a worker that sleeps for long, or is stopped, does not wait for another one.
func TestActivity(t *testing.T) {
	scripts := map[string]activity{
		`touch $GORUN_PROGRESS_FILE; exec sleep 100`:                                                                     idles,
		`touch $GORUN_PROGRESS_FILE; sleep 100; :`:                                                                       idles, // the shell only waits for it
		`touch $GORUN_PROGRESS_FILE; kill -STOP $$`:                                                                      idles,
		`touch $GORUN_PROGRESS_FILE; while :; do sleep 0.3; done`:                                                        waits, // it looks for something again and again
		`touch $GORUN_PROGRESS_FILE; while :; do :; done`:                                                                runs,
		`mkfifo $GORUN_PROGRESS_FILE.pipe; touch $GORUN_PROGRESS_FILE; read line <$GORUN_PROGRESS_FILE.pipe`:             waits,
		`mkfifo $GORUN_PROGRESS_FILE.pipe; touch $GORUN_PROGRESS_FILE; exec 3<>$GORUN_PROGRESS_FILE.pipe; read line <&3`: waits,
	}
	workers := newWorkers(t, len(scripts))
	i := 0
	for script, want := range scripts {
		w := &workers[i]
		i++
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			w.Pid = startWorker(t, *w, script)
			for begun := time.Now(); ; { // on a busy machine, it may not be there yet
				got := activityOf(t.Context(), *w, 500*time.Millisecond)
				if got == want {
					return
				}
				if time.Since(begun) > patience {
					t.Fatalf("%d, want %d", got, want)
				}
			}
		})
	}
}

// TestPolling: a worker that looks for another's file every second is not blamed for the other.
func TestPolling(t *testing.T) {
	t.Parallel()
	workers := newWorkers(t, 2)
	workers[0].Pid = startWorker(t, workers[0], `touch $GORUN_PROGRESS_FILE; while :; do sleep 1; done`)
	workers[1].Pid = startWorker(t, workers[1], `mkfifo $GORUN_PROGRESS_FILE.pipe; touch $GORUN_PROGRESS_FILE; read line <$GORUN_PROGRESS_FILE.pipe`)
	m := Watch(2500*time.Millisecond, workers, false, func() bool { return false }, ignored)
	defer m.Close()
	if h := <-m.Hangs(); !slices.Equal(h.Tied, []int{10, 11}) {
		t.Errorf("%+v", h)
	}
}

// TestSuspended: a worker that is stopped is found, and described. Nobody waits for its answer, since it cannot answer.
func TestSuspended(t *testing.T) {
	workers := newWorkers(t, 1)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	workers[0].Pid = startWorker(t, workers[0], "GORUN_TEST_SUSPENDED=$GORUN_PROGRESS_FILE exec "+exe)
	m := Watch(500*time.Millisecond, workers, false, func() bool { return false }, ignored)
	defer m.Close()
	h := <-m.Hangs()
	report, err := Collect(t.Context(), workers, t.TempDir())
	if err != nil || h.Reason != "it does not answer gorun" || report.Doing[0] != "it was stopped by a signal (state T (stopped))" || report.Dumps[0] {
		t.Errorf("%+v, %+v, %v", h, report, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if status, isSilent := ask(ctx, workers[0], true); status != nil || !isSilent || ctx.Err() != nil {
		t.Errorf("asked, it says %+v; silent: %t; in time: %v", status, isSilent, ctx.Err())
	}
}

// TestDebuggerStopsWorker: a worker that a debugger has stopped does not hang.
func TestDebuggerStopsWorker(t *testing.T) {
	workers := newWorkers(t, 2)
	for i := range workers {
		workers[i].Pid = startWorker(t, workers[i], `touch $GORUN_PROGRESS_FILE; exec sleep 100`)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := syscall.PtraceAttach(workers[1].Pid); err != nil {
		testkit.Cannot(t, "there can be no debugger here: %v", err)
	}
	if _, err := syscall.Wait4(workers[1].Pid, nil, syscall.WUNTRACED, nil); err != nil {
		t.Fatal(err)
	}
	m := Watch(200*time.Millisecond, workers, false, func() bool { return false }, ignored)
	defer m.Close()
	select {
	case h := <-m.Hangs():
		t.Fatalf("%+v", h)
	case <-time.After(time.Second):
	}
	if err := syscall.PtraceDetach(workers[1].Pid); err != nil {
		t.Fatal(err)
	}
	select {
	case <-m.Hangs():
	case <-time.After(patience):
		t.Error("when the debugger has gone, no worker hangs")
	}
}

// TestCollectOfNobody: a worker that has ended, or never was, is described as gone.
func TestCollectOfNobody(t *testing.T) {
	workers := newWorkers(t, 1)
	workers[0].Pid = 1 << 30
	if report, err := Collect(t.Context(), workers, t.TempDir()); err != nil || report.Dumps[0] {
		t.Errorf("%+v, %v", report, err)
	}
	AwaitEnd(t.Context(), workers[0].Pid, patience)
}
