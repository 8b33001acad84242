package launcher

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/env/proc"
	"github.com/gorun/gorun/env/testing/testkit"
)

// hold keeps a process from ending, whatever it is sent, until the test is over: a tracer stops it on its way out, where
// the kernel drops signals.
func hold(t *testing.T, pid int) {
	t.Helper()
	held, release, released := make(chan error), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(released)
		runtime.LockOSThread() // which is the tracer, and ends with this goroutine
		_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(pid), 0, unix.PTRACE_O_TRACEEXIT, 0, 0)
		if errno != 0 {
			held <- errno
			return
		}
		held <- nil
		<-release
	}()
	if err := <-held; err != nil {
		testkit.Cannot(t, "NO TEST OF PROCESSES THAT CANNOT BE KILLED: %v", err)
	}
	t.Cleanup(func() { close(release); <-released })
}

// warnings collects what a gang warns of.
type warnings struct {
	mu   sync.Mutex
	list []string
}

func (w *warnings) add(msg string) { w.mu.Lock(); defer w.mu.Unlock(); w.list = append(w.list, msg) }

func (w *warnings) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.list, "\n")
}

// TestProcessThatCannotBeKilled: the gang ends in time and names it, whoever has to notice: its guard, or, that having died or
// being suspended, its agent.
func TestProcessThatCannotBeKilled(t *testing.T) {
	for name, loseGuard := range map[string]func(*Gang) error{
		"guard lives":        func(*Gang) error { return nil },
		"guard is killed":    func(g *Gang) error { return syscall.Kill(g.guard.Load().Pid(), syscall.SIGKILL) },
		"guard is suspended": func(g *Gang) error { return syscall.Kill(g.guard.Load().Pid(), syscall.SIGSTOP) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var warned warnings
			s, con := spec(t, 2, "wait")
			s.Grace, s.Warn = 0, warned.add
			g := start(t, s)
			con.wait(t, "ready", 2)
			pid := g.Pids()[1]
			hold(t, pid)
			begun := time.Now()
			if err := loseGuard(g); err != nil {
				t.Fatal(err)
			}
			g.Kill()
			for _, e := range exits(t, g) {
				if e.Signal() != syscall.SIGKILL || !e.Stopped {
					t.Errorf("%+v", e)
				}
			}
			if took, most := time.Since(begun), 2*s.killTimeout()+guardTimeout+patience/2; took > most {
				t.Errorf("it took %v, want %v at most", took, most)
			}
			// Beside it, what the killed guard of a test that runs at the same time has left to this process.
			if want := fmt.Sprintf("%d (rank 1)", pid); strings.Count(warned.String(), want) != 1 || !strings.Contains(warned.String(), " within 5s: ") {
				t.Errorf("warnings %q, want %q once", warned.String(), want)
			}
			if p, ok := proc.Read(pid); !ok || p.Zombie {
				t.Error("the process has ended: this tests nothing")
			}
			if p, ok := proc.Read(g.Pids()[0]); ok && !p.Zombie {
				t.Error("the other worker lives")
			}
		})
	}
}

// TestGuardThatDoesNotAnswer: a guard that is suspended while all are asked to stop is given up after their time. However many signals it is to
// pass on before that, nobody waits for it.
func TestGuardThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	s, con := spec(t, 1, "polite")
	s.Grace = time.Second
	g := start(t, s)
	con.wait(t, "ready", 1)
	if err := syscall.Kill(g.guard.Load().Pid(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for range 10_000 {
		g.Signal(syscall.SIGUSR1)
	}
	g.Stop(syscall.SIGTERM)
	if e := exits(t, g)[0]; e.Cause != death.GuardLost {
		t.Errorf("%+v", e)
	}
	gone(t, g.Pids()...)
}

// TestGuardThatCrashes: what it says as it dies is told.
func TestGuardThatCrashes(t *testing.T) {
	var warned warnings
	s, con := spec(t, 1, "wait")
	s.Warn = warned.add
	g := start(t, s)
	con.wait(t, "ready", 1)
	if err := syscall.Kill(g.guard.Load().Pid(), syscall.SIGABRT); err != nil {
		t.Fatal(err)
	}
	if e := exits(t, g)[0]; e.Cause != death.GuardLost {
		t.Errorf("%+v", e)
	}
	if want := "message from the guard of the workers: SIGABRT: abort; "; !strings.HasPrefix(warned.String(), want) {
		t.Errorf("warnings %.200q, want %q", warned.String(), want)
	}
}
