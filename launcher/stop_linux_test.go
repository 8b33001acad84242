package launcher

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestStopLetsWorkersEnd(t *testing.T) {
	s, con := spec(t, 3, "polite")
	g := start(t, s)
	con.wait(t, "ready", 3)
	g.Stop(syscall.SIGTERM)
	g.Stop(syscall.SIGQUIT) // only the first counts
	for _, e := range exits(t, g) {
		if e.Code != 5 || !e.Stopped {
			t.Errorf("%+v", e)
		}
	}
	if n := strings.Count(con.String(), "bye"); n != 3 {
		t.Errorf("%d last words, want 3:\n%s", n, con)
	}
	g.Stop(syscall.SIGTERM) // after the end: nothing
	g.Kill()
	g.Signal(syscall.SIGUSR1)
}

func TestStopKillsAfterGrace(t *testing.T) {
	s, con := spec(t, 2, "deaf")
	s.Grace = 50 * time.Millisecond
	g := start(t, s)
	con.wait(t, "ready", 2)
	g.Stop(syscall.SIGTERM)
	for _, e := range exits(t, g) {
		if e.Signal != syscall.SIGKILL || !e.Stopped {
			t.Errorf("%+v", e)
		}
	}
}

func TestSetGrace(t *testing.T) {
	for _, c := range []struct {
		name  string
		spec  time.Duration
		calls func(*Gang)
	}{
		{"before Stop, shorter", time.Hour, func(g *Gang) { g.SetGrace(50 * time.Millisecond); g.Stop(syscall.SIGTERM) }},
		{"after Stop, shorter", time.Hour, func(g *Gang) { g.Stop(syscall.SIGTERM); g.SetGrace(50 * time.Millisecond) }},
		{"after Stop, longer", 50 * time.Millisecond, func(g *Gang) { g.Stop(syscall.SIGTERM); g.SetGrace(time.Hour) }},
		{"to nothing", time.Hour, func(g *Gang) { g.Stop(syscall.SIGTERM); g.SetGrace(0) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, con := spec(t, 1, "deaf")
			s.Grace = c.spec
			g := start(t, s)
			con.wait(t, "ready", 1)
			c.calls(g)
			if e := exits(t, g)[0]; e.Signal != syscall.SIGKILL || !e.Stopped {
				t.Errorf("%+v", e)
			}
		})
	}
	s, con := spec(t, 1, "polite")
	s.Grace = 0
	g := start(t, s)
	con.wait(t, "ready", 1)
	g.SetGrace(time.Hour)
	g.Stop(syscall.SIGTERM)
	if e := exits(t, g)[0]; e.Code != 5 {
		t.Errorf("a longer time: %+v", e)
	}
}

func TestStopWithoutGraceKillsAtOnce(t *testing.T) {
	s, con := spec(t, 1, "polite")
	s.Grace = 0
	g := start(t, s)
	con.wait(t, "ready", 1)
	g.Stop(syscall.SIGTERM)
	if e := exits(t, g)[0]; e.Signal != syscall.SIGKILL || !e.Stopped {
		t.Errorf("%+v", e)
	}
}

func TestKillDuringStop(t *testing.T) {
	s, con := spec(t, 2, "deaf")
	s.Grace = time.Hour
	g := start(t, s)
	con.wait(t, "ready", 2)
	g.Stop(syscall.SIGTERM)
	g.Kill()
	for _, e := range exits(t, g) {
		if e.Signal != syscall.SIGKILL || !e.Stopped {
			t.Errorf("%+v", e)
		}
	}
}

func TestStopReachesSuspendedWorker(t *testing.T) {
	s, con := spec(t, 1, "polite")
	g := start(t, s)
	con.wait(t, "ready", 1)
	if err := syscall.Kill(g.Pids()[0], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	g.Stop(syscall.SIGTERM)
	if e := exits(t, g)[0]; e.Code != 5 {
		t.Errorf("%+v", e)
	}
}

func TestStopReachesHelpersOfAnEndedWorker(t *testing.T) {
	s, con := spec(t, 1, "wait")
	exe := s.Argv[0]
	s.Argv = []string{"/bin/sh", "-c", `if [ "$RANK" = 0 ]; then "$0" polite & exit 0; fi; exec "$0" wait`, exe}
	s.Workers = workersOf(2)
	g := start(t, s)
	if e, _ := nextExit(t, g); e.LocalRank != 0 || e.Code != 0 {
		t.Fatalf("%+v", e)
	}
	con.wait(t, "ready", 2)
	g.Stop(syscall.SIGTERM)
	exits(t, g)
	con.wait(t, "[0] bye", 1)
}

func TestExitBeforeStopIsNotItsDoing(t *testing.T) {
	for range 10 { // the guard may see the two in either order
		s, con := spec(t, 2, "wait")
		g := start(t, s)
		con.wait(t, "ready", 2)
		if err := syscall.Kill(g.guard.Pid(), syscall.SIGSTOP); err != nil { // it sees both only later
			t.Fatal(err)
		}
		if err := syscall.Kill(g.Pids()[0], syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		gone(t, g.Pids()[0])
		g.Stop(syscall.SIGTERM)
		if err := syscall.Kill(g.guard.Pid(), syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		for _, e := range exits(t, g) {
			if e.Stopped != (e.LocalRank == 1) {
				t.Errorf("%+v", e)
			}
		}
	}
}

func TestGuardOutlivesSignals(t *testing.T) {
	s, con := spec(t, 1, "wait")
	g := start(t, s)
	con.wait(t, "ready", 1)
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1} {
		if err := syscall.Kill(g.guard.Pid(), sig); err != nil {
			t.Fatal(err)
		}
	}
	g.Stop(syscall.SIGTERM)
	if e := exits(t, g)[0]; e.GuardLost || e.Signal != syscall.SIGTERM {
		t.Errorf("%+v", e)
	}
}
