package launcher

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/env/death"
)

func TestStopLetsWorkersEnd(t *testing.T) {
	s, con := spec(t, 3, "polite")
	g := start(t, s)
	con.wait(t, "ready", 3)
	g.Stop(syscall.SIGTERM)
	g.Stop(syscall.SIGQUIT) // only the first counts
	for _, e := range exits(t, g) {
		if e.Code() != 5 || !e.Stopped {
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
		if e.Signal() != syscall.SIGKILL || !e.Stopped {
			t.Errorf("%+v", e)
		}
	}
}

func TestInterrupted(t *testing.T) {
	const longer = 1200 * time.Millisecond
	for _, c := range []struct {
		name  string
		spec  time.Duration
		calls func(*Gang)
	}{
		{"before Stop, shorter", time.Hour, func(g *Gang) { g.Interrupted(50 * time.Millisecond); g.Stop(syscall.SIGTERM) }},
		{"after Stop, shorter", time.Hour, func(g *Gang) { g.Stop(syscall.SIGTERM); g.Interrupted(50 * time.Millisecond) }},
		{"after Stop, longer", 600 * time.Millisecond, func(g *Gang) { g.Stop(syscall.SIGTERM); g.Interrupted(longer) }},
		{"to nothing", time.Hour, func(g *Gang) { g.Stop(syscall.SIGTERM); g.Interrupted(0) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, con := spec(t, 1, "deaf")
			s.Grace = c.spec
			g := start(t, s)
			con.wait(t, "ready", 1)
			begun := time.Now()
			c.calls(g)
			if e := exits(t, g)[0]; e.Signal() != syscall.SIGKILL || !e.Stopped {
				t.Errorf("%+v", e)
			}
			if took := time.Since(begun); c.name == "after Stop, longer" && took < longer {
				t.Errorf("it took %v", took)
			}
		})
	}
	s, con := spec(t, 1, "polite")
	s.Grace = 0
	g := start(t, s)
	con.wait(t, "ready", 1)
	g.Interrupted(time.Hour)
	g.Stop(syscall.SIGTERM)
	if e := exits(t, g)[0]; e.Code() != 5 {
		t.Errorf("a longer time: %+v", e)
	}
}

func TestStopWithoutGraceKillsAtOnce(t *testing.T) {
	s, con := spec(t, 1, "polite")
	s.Grace = 0
	g := start(t, s)
	con.wait(t, "ready", 1)
	g.Stop(syscall.SIGTERM)
	if e := exits(t, g)[0]; e.Signal() != syscall.SIGKILL || !e.Stopped {
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
		if e.Signal() != syscall.SIGKILL || !e.Stopped {
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
	if e := exits(t, g)[0]; e.Code() != 5 {
		t.Errorf("%+v", e)
	}
}

func TestStopReachesHelpersOfAnEndedWorker(t *testing.T) {
	s, con := spec(t, 1, "wait")
	exe := s.Argv[0]
	s.Argv = []string{"/bin/sh", "-c", `if [ "$RANK" = 0 ]; then "$0" polite & exit 0; fi; exec "$0" wait`, exe}
	s.Workers = workersOf(2)
	g := start(t, s)
	if e, _ := nextExit(t, g); e.LocalRank != 0 || e.Code() != 0 {
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
		if err := syscall.Kill(g.guard.Load().Pid(), syscall.SIGSTOP); err != nil { // it sees both only later
			t.Fatal(err)
		}
		if err := syscall.Kill(g.Pids()[0], syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		gone(t, g.Pids()[0])
		g.Stop(syscall.SIGTERM)
		if err := syscall.Kill(g.guard.Load().Pid(), syscall.SIGCONT); err != nil {
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
		if err := syscall.Kill(g.guard.Load().Pid(), sig); err != nil {
			t.Fatal(err)
		}
	}
	g.Stop(syscall.SIGTERM)
	if e := exits(t, g)[0]; e.Cause == death.GuardLost || e.Signal() != syscall.SIGTERM {
		t.Errorf("%+v", e)
	}
}

// TestStepSignals: what has reached the guard too is not sent to the workers again, unless the agent means something else by it.
func TestStepSignals(t *testing.T) {
	const worker = `trap 'echo got; n=$((n+1))' TERM USR1; echo ready; while [ "$n" != 2 ]; do sleep 0.01; done; exit 7`
	begin := func(t *testing.T, step bool) (*Gang, *screen) {
		t.Helper()
		s, con := spec(t, 1, "")
		s.Argv = []string{"/bin/sh", "-c", worker}
		if step {
			s.StepSignals = []syscall.Signal{syscall.SIGTERM, syscall.SIGINT}
		}
		g := start(t, s)
		con.wait(t, "ready", 1)
		return g, con
	}
	signal := func(t *testing.T, sig syscall.Signal, pids ...int) {
		t.Helper()
		for _, pid := range pids {
			if err := syscall.Kill(pid, sig); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Run("passed on", func(t *testing.T) {
		g, con := begin(t, true)
		signal(t, syscall.SIGUSR1, g.Pids()[0], g.guard.Load().Pid())
		con.wait(t, "got", 1)
		g.Signal(syscall.SIGUSR1) // this one is known
		g.Signal(syscall.SIGUSR1) // this one is not
		if e := exits(t, g)[0]; e.Code() != 7 || e.Stopped {
			t.Errorf("%+v", e)
		}
	})
	t.Run("stopped", func(t *testing.T) {
		g, con := begin(t, true)
		signal(t, syscall.SIGTERM, g.Pids()[0], g.guard.Load().Pid())
		con.wait(t, "got", 1)
		g.Interrupted(300 * time.Millisecond)
		g.Stop(syscall.SIGTERM)
		if e := exits(t, g)[0]; e.Signal() != syscall.SIGKILL || !e.Stopped { // it has not got two
			t.Errorf("%+v", e)
		}
	})
	t.Run("stopped for another reason", func(t *testing.T) {
		g, con := begin(t, true)
		signal(t, syscall.SIGTERM, g.Pids()[0], g.guard.Load().Pid())
		con.wait(t, "got", 1)
		g.Stop(syscall.SIGTERM)
		if e := exits(t, g)[0]; e.Code() != 7 {
			t.Errorf("%+v", e)
		}
	})
	t.Run("not a step", func(t *testing.T) {
		g, con := begin(t, false)
		signal(t, syscall.SIGTERM, g.Pids()[0], g.guard.Load().Pid())
		con.wait(t, "got", 1)
		g.Interrupted(time.Hour)
		g.Stop(syscall.SIGTERM)
		if e := exits(t, g)[0]; e.Code() != 7 || e.Interrupt != 0 {
			t.Errorf("%+v", e)
		}
	})
	t.Run("ended by it", func(t *testing.T) {
		g, _ := begin(t, true)
		signal(t, syscall.SIGINT, g.guard.Load().Pid(), g.Pids()[0])
		if e := exits(t, g)[0]; e.Signal() != syscall.SIGINT || !e.Stopped || e.Interrupt != syscall.SIGINT {
			t.Errorf("%+v", e)
		}
	})
	t.Run("killed by somebody", func(t *testing.T) {
		g, _ := begin(t, true)
		signal(t, syscall.SIGINT, g.Pids()[0])
		if e := exits(t, g)[0]; e.Signal() != syscall.SIGINT || e.Stopped || e.Interrupt != 0 {
			t.Errorf("%+v", e)
		}
	})
}

// TestWhoGetsTheSignal: a stop signals what a worker has started in its own process group or in another one, but what has left the session
// only when all others have ended, and some time is over.
func TestWhoGetsTheSignal(t *testing.T) {
	t.Parallel()
	const says = `trap 'echo %s has got it; exit 5' TERM; echo ready; while :; do sleep 0.05; done`
	child := func(prefix, name string) string {
		return prefix + `sh -c "` + strings.Replace(says, "%s", name, 1) + `" & `
	}
	s, con := spec(t, 1)
	otherGroup := `set -m; ` + child("", "another group") + `set +m; `
	s.Argv = []string{"/bin/sh", "-c", child("", "its group") + otherGroup + child("setsid ", "another session") +
		strings.Replace(says, "%s", "the worker", 1)}
	s.Workers[0].Env = []string{"PATH=/usr/bin:/bin"}
	var warned warnings
	s.Warn = warned.add
	g := start(t, s)
	con.wait(t, "ready", 4)
	g.Stop(syscall.SIGTERM)
	if e := exits(t, g)[0]; e.Code() != 5 || !e.Stopped {
		t.Errorf("%+v", e)
	}
	before, after, _ := strings.Cut(con.String(), "another session has got it")
	for _, name := range []string{"the worker", "its group", "another group"} {
		if !strings.Contains(before, name+" has got it") {
			t.Errorf("%s has not got the signal before the other session:\n%s\n%s", name, before, after)
		}
	}
	if want := "processes that outlived their workers were killed: "; !strings.HasPrefix(warned.String(), want) {
		t.Errorf("warned %q, want %q", warned.String(), want)
	}
}
