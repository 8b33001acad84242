package launcher

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/launcher/proc"
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
	guard := g.guard.Pid()
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

// TestGuardOfReplaceLost: the gang is over when its guard is killed, and says so of all workers.
func TestGuardOfReplaceLost(t *testing.T) {
	s, con := spec(t, 2, "daemon", "wait")
	g := startApart(t, s)
	con.wait(t, "ready", 4)
	pids := append(con.pids(t, "daemon", 2), g.Pids()...)
	if err := syscall.Kill(g.guard.Pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for _, x := range exits(t, g) {
		if x.Cause != death.GuardLost {
			t.Errorf("%+v", x)
		}
	}
	gone(t, pids...)
	if err := g.Replace(t.Context(), s, []int{0}); err == nil || !strings.Contains(err.Error(), "the guard of the workers ended") {
		t.Errorf("a worker is replaced: %v", err)
	}
}
