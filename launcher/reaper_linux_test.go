package launcher

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/env/proc"
	"github.com/gorun/gorun/env/testing/testkit"
	"github.com/gorun/gorun/launcher/guard"
	"github.com/gorun/gorun/launcher/spool"
)

// startInit starts a shell as process 1 of a new PID namespace, as an entrypoint. $0 is this binary, descriptor 3 is
// what entrypoint gets. It returns the process id that process 1 has out here.
func startInit(t *testing.T, entrypoint *os.File, script string) (pid int, agent *exec.Cmd, stdin io.Closer, con *screen) {
	t.Helper()
	namespace := []string{"unshare", "--pid", "--fork", "--mount-proc", "--kill-child"}
	if out, err := exec.Command(namespace[0], append(namespace[1:], "true")...).CombinedOutput(); err != nil {
		testkit.Cannot(t, "NOT TESTED: no PID namespace can be made here: %v: %s", err, out)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	con = newScreen()
	agent = exec.Command(namespace[0], append(namespace[1:], "/bin/sh", "-c", script, exe)...)
	agent.Env = []string{"LAUNCHER_TEST_WORKER=1", "PATH=" + os.Getenv("PATH")}
	agent.Stdout, agent.Stderr, agent.ExtraFiles = con, os.Stderr, []*os.File{entrypoint}
	if stdin, err = agent.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = agent.Process.Kill(); _ = agent.Wait() })
	con.wait(t, "ready", 1)
	return childrenOf(agent.Process.Pid)[0], agent, stdin, con
}

func childrenOf(pid int) (pids []int) {
	for _, p := range proc.All() {
		if p.Parent == pid {
			pids = append(pids, p.Pid)
		}
	}
	return pids
}

// A daemon from before, whose parent has become the agent, is no zombie when it has ended.
func TestInitReapsStrangers(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	agent, cmd, stdin, con := startInit(t, read, `"$0" until <&3 & exec "$0" init "" "$0" wait`)
	_ = read.Close()
	con.wait(t, "ready", 2)
	before := childrenOf(agent)
	if len(before) != 2 { // and the guard
		t.Fatalf("the agent has children %v", before)
	}
	_ = write.Close()
	onlyChild := waitForChildren(t, agent, 1)
	if p, ok := proc.Read(onlyChild[0]); !ok || p.Zombie || !slices.Contains(before, p.Pid) {
		t.Errorf("the guard: %+v", p)
	}
	_ = stdin.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	for i := range 2 {
		con.wait(t, fmt.Sprintf("exit of %d: signal 9 (SIGKILL)", i), 1)
	}
}

// Gangs whose workers leave orphans behind, guards that are killed and a stream of strangers: every worker's end is
// told as it was, and no zombie stays.
func TestInitReapsUnderLoad(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = write.Close() }()
	gangs := testkit.UnlessShort(30, 10)
	agent, cmd, stdin, con := startInit(t, read, fmt.Sprintf(
		`(i=0; while [ $i -lt %d ]; do (true &); (setsid true &); i=$((i+1)); done) & exec "$0" manygangs "$0" %d`, 5*gangs, gangs))
	_ = read.Close()
	con.wait(t, "done", 1)
	waitForChildren(t, agent, 0)
	_ = stdin.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if con.String() != "ready\ndone\n" {
		t.Error(con)
	}
}

// What os/exec starts in process 1 is left to it, while strangers are reaped.
func TestInitLeavesOwnChildren(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = write.Close() }()
	agent, cmd, stdin, con := startInit(t, read, `(i=0; while [ $i -lt 100 ]; do (true &); i=$((i+1)); done) & exec "$0" runsprograms`)
	_ = read.Close()
	con.wait(t, "done", 1)
	waitForChildren(t, agent, 0)
	_ = stdin.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if con.String() != "ready\ndone\n" {
		t.Error(con)
	}
}

// runsPrograms runs programs by os/exec, one after the other, and says which of them it has lost.
func runsPrograms([]string) {
	stop := guard.ReapAsInit()
	defer stop()
	fmt.Println("ready")
	for i := range 300 {
		if err := exec.Command("/bin/true").Run(); err != nil {
			fmt.Printf("program %d: %v\n", i, err)
		}
	}
	fmt.Println("done")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// waitForChildren waits until a process has n children, zombies among them: there is no event for that.
func waitForChildren(t *testing.T, pid, n int) []int {
	t.Helper()
	begin := time.Now()
	for {
		pids := childrenOf(pid)
		if len(pids) == n {
			return pids
		}
		if time.Since(begin) > patience {
			t.Fatalf("process %d has children %v, want %d", pid, pids, n)
		}
		time.Sleep(time.Millisecond)
	}
}

func until([]string) { _, _ = io.Copy(io.Discard, os.Stdin) }

func initMain(args []string) {
	stop := guard.ReapAsInit()
	defer stop()
	agentMain(args)
}

// manyGangs starts gangs, one after the other, and says which exits are not as they should be. args are this binary and the number of gangs.
func manyGangs(args []string) {
	stop := guard.ReapAsInit()
	gangs, err := strconv.Atoi(args[1])
	must(err)
	fmt.Println("ready")
	for i := range gangs {
		s := Spec{Argv: []string{"/bin/sh", "-c", "(true &); (setsid true &); (sleep 100 &); exit $((RANK+1))"}, Workers: workersOf(4), Spool: spool.New()}
		lost := i%5 == 4
		if lost {
			s.Argv = []string{args[0], "wait"}
		}
		for i := range s.Workers {
			s.Workers[i].Env = append(s.Workers[i].Env, "PATH="+os.Getenv("PATH"))
		}
		g, err := Start(context.Background(), s)
		must(err)
		if lost {
			must(syscall.Kill(g.guard.Load().Pid(), syscall.SIGKILL))
		}
		seen := 0
		for e := range g.Exits() {
			seen++
			if e.Cause == death.GuardLost != lost || !lost && e.Code() != e.LocalRank+1 {
				fmt.Printf("gang %d: %+v\n", i, e)
			}
		}
		if seen != 4 {
			fmt.Printf("gang %d: %d exits\n", i, seen)
		}
	}
	fmt.Println("done")
	_, _ = io.Copy(io.Discard, os.Stdin)
	stop()
}
