package launcher

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/env/proc"
	"github.com/gorun/gorun/launcher/guard"
)

// startApart starts a gang whose workers are replaced. It is finished at the end of the test.
func startApart(t *testing.T, s Spec) *Gang {
	t.Helper()
	s.Apart = true
	g, err := Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		g.Kill()
		g.Finish()
		for range g.Exits() {
		}
	})
	return g
}

// nextEnd waits until nothing is left of a worker.
func nextEnd(t *testing.T, g *Gang) int {
	t.Helper()
	select {
	case local := <-g.Ended():
		return local
	case <-time.After(patience):
		t.Fatal("nothing ends")
		return 0
	}
}

func lives(pid int) bool { p, ok := proc.Read(pid); return ok && !p.Zombie }

// TestReplace: a worker is replaced with all that it has started, and the others and what they have started do not
// notice.
func TestReplace(t *testing.T) {
	t.Parallel()
	var warned warnings
	s, con := spec(t, 3, "daemon", "wait")
	s.Warn = warned.add
	g := startApart(t, s)
	con.wait(t, "ready", 6)
	before, daemons := g.Pids(), con.pids(t, "daemon", 3)
	if err := syscall.Kill(before[1], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if x, _ := nextExit(t, g); x.LocalRank != 1 || x.Stopped || x.Pid != before[1] || x.Signal() != syscall.SIGKILL {
		t.Errorf("%+v", x)
	}
	if local := nextEnd(t, g); local != 1 {
		t.Errorf("%d has ended", local)
	}
	if left := slices.DeleteFunc(daemons, func(pid int) bool { return !lives(pid) }); len(left) != 2 {
		t.Errorf("of the daemons, %v are left", left)
	}
	if want := "processes that outlived their workers were killed: 1 of rank 1"; warned.String() != want {
		t.Errorf("warned %q, want %q", warned.String(), want)
	}
	s.Workers[1].Rank, s.Workers[1].Prefix = 7, "[7] "
	if err := g.Replace(t.Context(), s, []int{1}); err != nil {
		t.Fatal(err)
	}
	con.wait(t, "[7] ready", 1)
	now := g.Pids()
	if now[0] != before[0] || now[1] == before[1] || now[2] != before[2] {
		t.Errorf("the workers were %v, and are %v", before, now)
	}
	g.Stop(syscall.SIGTERM, 1)
	if x, _ := nextExit(t, g); x.LocalRank != 1 || x.Rank != 7 || !x.Stopped || x.Signal() != syscall.SIGTERM {
		t.Errorf("%+v", x)
	}
	if local := nextEnd(t, g); local != 1 || !lives(now[0]) || !lives(now[2]) {
		t.Errorf("%d has ended; the others live: %v, %v", local, lives(now[0]), lives(now[2]))
	}
}

// TestReplaceAll: the gang, and its guard, are there when no worker is.
func TestReplaceAll(t *testing.T) {
	s, con := spec(t, 2, "exit", "3")
	g := startApart(t, s)
	for range 2 {
		if x, _ := nextExit(t, g); x.Code() != 3 {
			t.Errorf("%+v", x)
		}
		nextEnd(t, g)
	}
	guard := g.guard.Load().Pid()
	s.Argv = []string{s.Argv[0], "wait"}
	if err := g.Replace(t.Context(), s, []int{0, 1}); err != nil {
		t.Fatal(err)
	}
	con.wait(t, "ready", 2)
	if p, ok := proc.Read(g.Pids()[0]); !ok || p.Parent != guard {
		t.Errorf("%+v, want guard %d", p, guard)
	}
	s.Argv = []string{"/nowhere"}
	g.Kill(0)
	if x, _ := nextExit(t, g); x.LocalRank != 0 || !x.Stopped {
		t.Errorf("%+v", x)
	}
	if _, notFound := errors.AsType[*NotFoundError](g.Replace(t.Context(), s, []int{0})); !notFound {
		t.Error("a worker starts without its program")
	}
	if !lives(g.Pids()[1]) {
		t.Error("and the other one does not survive that")
	}
	g.Stop(syscall.SIGTERM)
	g.Finish()
	var all []death.Death
	for x := range g.Exits() {
		all = append(all, x)
	}
	if len(all) != 1 || all[0].LocalRank != 1 {
		t.Errorf("%+v", all)
	}
}

// TestHiddenProcess: a process that shares nothing with its worker any more is ended with the last worker that runs.
func TestHiddenProcess(t *testing.T) {
	s, con := spec(t, 2, "wait")
	end := filepath.Join(t.TempDir(), "end") // until then the worker lives
	s.Workers[0].Argv = []string{
		"/bin/sh", "-c", `setsid env -i LAUNCHER_TEST_WORKER=1 "$0" wait & echo hidden $!; until test -e "$1"; do sleep 0.05; done`, s.Argv[0], end,
	}
	s.Warn = func(string) {}
	g := startApart(t, s)
	con.wait(t, "ready", 2)
	hidden := con.pids(t, "hidden", 1)[0]
	if err := os.WriteFile(end, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if local := nextEnd(t, g); local != 0 || !lives(hidden) || !lives(g.Pids()[1]) {
		t.Errorf("%d has ended; the hidden process lives: %v", local, lives(hidden))
	}
	g.Stop(syscall.SIGTERM)
	if local := nextEnd(t, g); local != 1 || lives(hidden) {
		t.Errorf("%d has ended; the hidden process lives: %v", local, lives(hidden))
	}
}

// TestHiddenProcessOfStopping: such a process lives as long as a worker that is being stopped, and counts as no other worker's.
func TestHiddenProcessOfStopping(t *testing.T) {
	var warned warnings
	s, con := spec(t, 2, "wait")
	end := filepath.Join(t.TempDir(), "end") // until then the worker lives
	s.Workers[0].Argv = []string{
		"/bin/sh", "-c", `trap "" TERM; (setsid env -i LAUNCHER_TEST_WORKER=1 "$0" wait & echo hidden $!); until test -e "$1"; do sleep 0.05; done`, s.Argv[0], end,
	}
	s.Warn, s.Grace = warned.add, patience
	g := startApart(t, s)
	con.wait(t, "ready", 2)
	hidden := con.pids(t, "hidden", 1)[0]
	g.Stop(syscall.SIGTERM, 0)
	g.Kill(1)
	if local := nextEnd(t, g); local != 1 || !lives(hidden) || !lives(g.Pids()[0]) {
		t.Errorf("%d has ended; the hidden process lives: %v", local, lives(hidden))
	}
	if err := os.WriteFile(end, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if local := nextEnd(t, g); local != 0 || lives(hidden) {
		t.Errorf("%d has ended; the hidden process lives: %v", local, lives(hidden))
	}
	if want := "processes that outlived their workers were killed: 1 of a rank that is not known"; warned.String() != want {
		t.Errorf("warned %q, want %q", warned.String(), want)
	}
}

// TestGuardDies: at whatever step of Start the guard dies, the workers have started, and die with it.
func TestGuardDies(t *testing.T) {
	kill := func(its *guard.Guard) { _ = syscall.Kill(its.Pid(), syscall.SIGKILL) }
	suspended := func(its *guard.Guard) { _ = syscall.Kill(its.Pid(), syscall.SIGSTOP) } // so it starts nobody
	const n = 16
	for step, its := range map[string]struct{ before, meanwhile, after func(*guard.Guard) }{
		"before": {before: kill}, "meanwhile": {before: suspended, meanwhile: kill}, "after": {after: kill},
	} {
		for _, apart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, apart=%v", step, apart), func(t *testing.T) {
				ahead, err := guard.Start(n)
				if err != nil {
					t.Fatal(err)
				}
				s, _ := spec(t, n, "wait")
				s.Guard, s.Apart = ahead, apart
				if its.before != nil {
					its.before(ahead)
				}
				if its.meanwhile != nil {
					defer time.AfterFunc(10*time.Millisecond, func() { its.meanwhile(ahead) }).Stop()
				}
				g := start(t, s)
				if its.after != nil {
					its.after(ahead)
				}
				for range n {
					if x, ok := nextExit(t, g); !ok || x.Cause != death.GuardLost || !x.Failed() || x.Stopped {
						t.Errorf("%+v, %v", x, ok)
					}
					g.Stop(syscall.SIGTERM) // as an agent does after the first death; it is not why the others die
				}
				g.Finish()
				if more := exits(t, g); len(more) > 0 {
					t.Errorf("and %+v", more)
				}
				gone(t, g.Pids()...)
			})
		}
	}
}

// allDieWithGuard expects the death of n workers because their guard has died.
func allDieWithGuard(t *testing.T, g *Gang, n int) {
	t.Helper()
	for range n {
		if x, ok := nextExit(t, g); !ok || x.Cause != death.GuardLost || !x.Failed() {
			t.Errorf("%+v, %v", x, ok)
		}
		if g.spec.Apart {
			nextEnd(t, g)
		}
	}
}

// TestGuardDiesAtReplace: at whatever step of Replace the guard dies, the new worker dies with the others, or has
// another guard. The gang goes on.
func TestGuardDiesAtReplace(t *testing.T) {
	s, con := spec(t, 2, "daemon", "wait")
	g := startApart(t, s)
	con.wait(t, "ready", 4)
	pids := con.pids(t, "daemon", 2)
	s.Argv, s.Apart = []string{s.Argv[0], "wait"}, true
	kill := func() { _ = syscall.Kill(g.guard.Load().Pid(), syscall.SIGKILL) }
	replace := func(locals ...int) {
		t.Helper()
		if err := g.Replace(t.Context(), s, locals); err != nil {
			t.Fatal(err)
		}
	}
	kill()
	allDieWithGuard(t, g, 2)
	gone(t, pids...)
	replace(0, 1) // since the guard's death is known

	end := func() { // of one worker
		t.Helper()
		g.Kill(1)
		if x, _ := nextExit(t, g); x.LocalRank != 1 || x.Cause != "" {
			t.Errorf("%+v", x)
		}
		nextEnd(t, g)
	}
	end()
	_ = syscall.Kill(g.guard.Load().Pid(), syscall.SIGSTOP)
	g.Kill(0)
	time.AfterFunc(10*time.Millisecond, kill)
	replace(1) // while the guard is suspended: it starts and kills nobody
	allDieWithGuard(t, g, 2)
	g.clock.mu.Lock()
	if at := g.clock.first(); !at.IsZero() {
		t.Errorf("the next guard has to report at %v that a worker of this one has ended", at)
	}
	g.clock.mu.Unlock()
	replace(0, 1)

	for i := range 10 {
		end()
		its := g.guard.Load()
		time.AfterFunc(time.Duration(i)*300*time.Microsecond, func() { _ = syscall.Kill(its.Pid(), syscall.SIGKILL) })
		replace(1)
		if x, _ := nextExit(t, g); x.Cause != death.GuardLost {
			t.Errorf("%+v", x)
		}
		nextEnd(t, g)
		if g.guard.Load() == its { // else the worker has another
			allDieWithGuard(t, g, 1)
		} else {
			g.Kill(1)
			nextExit(t, g)
			nextEnd(t, g)
		}
		replace(0, 1)
	}
}
