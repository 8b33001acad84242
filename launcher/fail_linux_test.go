package launcher

import (
	"strings"
	"syscall"
	"testing"

	"github.com/gorun/gorun/env/death"
)

// TestFail: a worker that hangs, stopped or deaf, is killed, and nobody else; its exit is its own failure, also if the gang is stopped at the
// same time, and says why.
func TestFail(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		s, con := spec(t, 3, "deaf")
		g := start(t, s)
		con.wait(t, "ready", 3)
		if stopped {
			if err := syscall.Kill(g.Pids()[1], syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
		}
		g.Fail(1, "it made no progress for 5s", 0)
		g.Fail(1, "and again", 0) // the first counts
		if stopped {
			g.Stop(syscall.SIGTERM)
		}
		e, _ := nextExit(t, g)
		if e.LocalRank != 1 || e.Signal() != syscall.SIGKILL || e.Stopped || e.String() != "signal 9 (SIGKILL): it made no progress for 5s" {
			t.Errorf("%+v", e)
		}
		g.Kill()
		for _, e := range exits(t, g) {
			if e.Cause == death.Hang || !e.Stopped {
				t.Errorf("%+v", e)
			}
		}
		g.Fail(0, "it has ended", 0) // nothing
	}
}

// TestFailQuits: a Go program prints its stacks before it ends.
func TestFailQuits(t *testing.T) {
	s, con := spec(t, 1, "wait")
	g := start(t, s)
	con.wait(t, "ready", 1)
	g.Fail(0, "it hangs", syscall.SIGQUIT)
	e := exits(t, g)[0]
	if e.Signal() != syscall.SIGKILL || e.Why != "it hangs" || e.Cause != death.Hang || e.Stopped || !strings.Contains(con.String(), "goroutine 1 ") {
		t.Errorf("%+v\n%s", e, con)
	}
	s, con = spec(t, 1, "deaf") // which ignores SIGQUIT as well
	s.Argv = []string{"/bin/sh", "-c", "trap '' QUIT; echo ready; while :; do sleep 100; done"}
	var warned warnings
	s.Warn = warned.add
	g = start(t, s)
	con.wait(t, "ready", 1)
	g.Fail(0, "it hangs", syscall.SIGQUIT)
	if e := exits(t, g)[0]; e.Signal() != syscall.SIGKILL || e.Why != "it hangs" || e.Cause != death.Hang {
		t.Errorf("%+v", e)
	}
	if want := "processes that outlived their workers were killed: 1 of rank 0"; warned.String() != want { // sleep
		t.Errorf("warned %q, want %q", warned.String(), want)
	}
}
