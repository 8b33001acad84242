package guard

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gorun/gorun/env/proc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestGuardThatIsNotNeeded(t *testing.T) {
	for range 20 { // also before its main has begun
		guard, err := Start(100)
		if err != nil {
			t.Fatal(err)
		}
		guard.Close()
		guard.Close()
	}
	noChildren(t)
}

// TestReusedPid: the pid of a guard that has been waited for may be another process's, whose children are not the guard's.
func TestReusedPid(t *testing.T) {
	other := exec.Command("/bin/sh", "-c", "sleep 1000 & echo $!; wait")
	out, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	var child int
	if _, err := fmt.Fscan(out, &child); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = syscall.Kill(child, syscall.SIGKILL)
		_ = other.Wait() // which the end of its child ends
		noChildren(t)
	}()

	g, err := Start(1)
	if err != nil {
		t.Fatal(err)
	}
	g.Take()
	guard := g.pid
	g.pid = other.Process.Pid
	if denied, stuck := g.End(time.Minute); denied != nil || stuck != nil {
		t.Errorf("denied %v, stuck %v", denied, stuck)
	}
	g.pid = guard
	g.Release()
	if p, ok := proc.Read(child); !ok || p.Zombie {
		t.Error("the child of another process was killed")
	}
}

func noChildren(t *testing.T) {
	t.Helper()
	self := os.Getpid()
	if list := proc.Descendants(proc.All(), func(p proc.Process) bool { return p.Parent == self }); len(list) > 0 {
		t.Errorf("children left: %+v", list)
	}
}
