package launcher

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/env/proc"
	"github.com/gorun/gorun/env/testing/testkit"
)

func TestDaemonIsGoneAfterNormalEnd(t *testing.T) {
	t.Parallel()
	var warned warnings
	s, con := spec(t, 2, "daemon", "exit", "0")
	s.Warn = warned.add
	begin := time.Now()
	for _, e := range exits(t, start(t, s)) { // and the pipes that the daemons hold do not delay it
		if e.Failed() {
			t.Errorf("%+v", e)
		}
	}
	t.Logf("ended after %v", time.Since(begin))
	for _, pid := range con.pids(t, "daemon", 2) {
		if p, ok := proc.Read(pid); ok {
			t.Errorf("the gang has ended and there is %+v", p)
		}
	}
	if want := "processes that outlived their workers were killed: 1 of rank 0, 1 of rank 1"; warned.String() != want {
		t.Errorf("warned %q, want %q", warned.String(), want)
	}
}

func TestDaemonThatNeverStopsWritingHoldsNothingUp(t *testing.T) {
	s, con := spec(t, 2, "wait")
	s.Argv = []string{"/bin/sh", "-c", `if [ "$RANK" = 0 ]; then "$0" chatter & exit 3; fi; exec "$0" wait`, s.Argv[0]}
	var warned warnings
	s.Warn = warned.add
	g := start(t, s)
	con.wait(t, "ready", 1)
	if e, _ := nextExit(t, g); e.LocalRank != 0 || e.Code() != 3 {
		t.Errorf("%+v", e)
	}
	g.Kill()
	exits(t, g)
	if want := "processes that outlived their workers were killed: 1 of rank 0"; warned.String() != want {
		t.Errorf("warned %q, want %q", warned.String(), want)
	}
}

// startAgent starts this binary as an agent whose workers run argv.
func startAgent(t *testing.T, attr *syscall.SysProcAttr, tempDir string, argv ...string) (*exec.Cmd, io.Closer, *screen) {
	t.Helper()
	return startAgentBy(t, []string{"/proc/self/exe"}, attr, tempDir, argv...)
}

// startAgentBy is startAgent through a command that executes its arguments, the last of which is this binary.
func startAgentBy(t *testing.T, command []string, attr *syscall.SysProcAttr, tempDir string, argv ...string) (*exec.Cmd, io.Closer, *screen) {
	t.Helper()
	con := newScreen()
	agent := exec.Command(command[0], slices.Concat(command[1:], []string{"agent", tempDir}, argv)...)
	agent.Env = []string{"LAUNCHER_TEST_WORKER=1"}
	agent.Stdout, agent.Stderr, agent.SysProcAttr = con, os.Stderr, attr
	stdin, err := agent.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = agent.Process.Kill(); _ = agent.Wait() })
	return agent, stdin, con
}

func TestSIGKILLOfAgentLeavesNothing(t *testing.T) {
	t.Parallel()
	temp := filepath.Join(t.TempDir(), "build")
	if err := os.Mkdir(temp, 0o755); err != nil {
		t.Fatal(err)
	}
	agent, _, con := startAgent(t, nil, temp, "/proc/self/exe", "daemon", "wait")
	con.wait(t, "] ready", 4)
	pids := slices.Concat(con.pids(t, "guard", 1), con.pids(t, "worker", 2), con.pids(t, "daemon", 2))
	if err := agent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	gone(t, pids...)
	if _, err := os.Stat(temp); !os.IsNotExist(err) {
		t.Errorf("the built program is still there: %v", err)
	}
}

func TestSIGKILLOfGuardLeavesNothing(t *testing.T) {
	bystander := exec.Command("/proc/self/exe", "wait") // a child of this process that no gang started
	bystander.Env = []string{"LAUNCHER_TEST_WORKER=1"}
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = bystander.Process.Kill(); _ = bystander.Wait() }()
	s, con := spec(t, 2, "daemon", "wait")
	g := start(t, s)
	con.wait(t, "ready", 4)
	pids := append(con.pids(t, "daemon", 2), g.Pids()...)

	other, otherCon := spec(t, 1, "daemon", "polite")
	otherGang := start(t, other)
	otherCon.wait(t, "ready", 2)
	young := exec.Command("/proc/self/exe", "wait") // one younger than the guard
	young.Env = bystander.Env
	if err := young.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = young.Process.Kill(); _ = young.Wait() }()

	if err := syscall.Kill(g.guard.Load().Pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for i, e := range exits(t, g) {
		if e.LocalRank != i || e.Cause != death.GuardLost || e.Stopped || e.Code() != 137 || !e.Failed() {
			t.Errorf("%+v", e)
		}
	}
	for _, pid := range pids {
		if p, ok := proc.Read(pid); ok {
			t.Errorf("the gang has ended and there is %+v", p)
		}
	}
	for _, cmd := range []*exec.Cmd{bystander, young} {
		if p, ok := proc.Read(cmd.Process.Pid); !ok || p.Zombie {
			t.Errorf("process %d was no part of the gang and is dead", cmd.Process.Pid)
		}
	}
	if err := syscall.Kill(otherCon.pids(t, "daemon", 1)[0], syscall.SIGKILL); err != nil {
		t.Errorf("the other gang's daemon: %v", err)
	}
	otherGang.Stop(syscall.SIGTERM)
	for _, e := range exits(t, otherGang) {
		if e.Cause == death.GuardLost || e.Code() != 5 {
			t.Errorf("the other gang: %+v", e)
		}
	}
}

// The agent cannot act, so the workers must die of the guard's death by themselves.
func TestSIGKILLOfGuardWhileAgentIsSuspended(t *testing.T) {
	agent, _, con := startAgent(t, nil, "", "/proc/self/exe", "wait")
	con.wait(t, "] ready", 2)
	workers := con.pids(t, "worker", 2)
	t.Cleanup(func() {
		for _, pid := range workers {
			_ = syscall.Kill(pid, syscall.SIGKILL) // where this test fails, nobody else would
		}
	})
	if err := agent.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(con.pids(t, "guard", 1)[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	gone(t, workers...)
}

func TestSIGKILLOfGuardDuringStop(t *testing.T) {
	s, con := spec(t, 1, "deaf")
	g := start(t, s)
	con.wait(t, "ready", 1)
	g.Stop(syscall.SIGTERM)
	if err := syscall.Kill(g.guard.Load().Pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if e := exits(t, g)[0]; e.Cause != death.GuardLost || !e.Stopped {
		t.Errorf("%+v", e)
	}
}

// A user may not kill what a setuid program has become, but need not wait for it either.
func TestUnkillableWorkersAreReportedAndLeft(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		testkit.Cannot(t, "NOT TESTED: only root can make a program that another user cannot kill")
	}
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} { // whatever the umask
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "setuid")
	if err := os.WriteFile(path, program, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o755|os.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	nobody := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	agent, stdin, con := startAgent(t, nobody, "", path, "root")
	pids := con.pids(t, "worker", 2)
	for _, pid := range pids {
		if p, ok := proc.Read(pid); ok {
			t.Cleanup(func() { _ = p.Signal(syscall.SIGKILL); gone(t, pid) })
		}
	}
	con.wait(t, "ready", 2)
	if strings.Contains(con.String(), "refused") {
		testkit.Cannot(t, "NOT TESTED: setuid programs are not allowed here")
	}
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if err := agent.Wait(); err != nil {
		t.Error(err)
	}
	con.wait(t, "exit of ", 2)
	// That they are named says that SIGKILL was refused. What becomes of them is up to who adopts them when the agent has ended: it may kill them.
	slices.Sort(pids)
	con.wait(t, fmt.Sprintf("processes %v still run: the workers started them as another user", pids), 1)
}

func TestNohupReachesWorkers(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	con := newScreen()
	for _, tt := range []struct{ trap, want string }{{"trap '' HUP; ", "true"}, {"", fmt.Sprint(signal.Ignored(syscall.SIGHUP))}} {
		agent := exec.Command("/bin/sh", "-c", tt.trap+`exec "$0" agent "" "$0" hup`, exe)
		agent.Env = []string{"LAUNCHER_TEST_WORKER=1"}
		agent.Stdout, agent.Stderr = con, os.Stderr
		stdin, err := agent.StdinPipe() // its end would kill the workers
		if err != nil {
			t.Fatal(err)
		}
		if err := agent.Run(); err != nil {
			t.Fatal(err)
		}
		_ = stdin.Close()
		con.wait(t, "SIGHUP ignored: "+tt.want, 2)
	}
}
