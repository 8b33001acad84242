package guard

import (
	"os"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/gorun/gorun/launcher/proc"
)

// The test binary is also the guard of its tests.
func TestMain(m *testing.M) {
	if Is() {
		syscall.Exit(Main()) // without the second that the race detector takes for os.Exit
	}
	goleak.VerifyTestMain(m)
}

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

func TestStartAhead(t *testing.T) {
	CloseAhead() // there is none
	StartAhead()
	first := ahead.Load()
	guards := [2]*Guard{}
	for i := range guards {
		var err error
		if guards[i], err = Start(1); err != nil {
			t.Fatal(err)
		}
	}
	if guards[0] != first || guards[1] == first {
		t.Errorf("ahead was %p, started %p", first, guards)
	}
	CloseAhead() // it has been returned, so it lives
	if p, ok := proc.Read(first.Pid()); !ok || p.Zombie {
		t.Error("a guard in use was ended")
	}
	guards[0].Close()
	guards[1].Close()
	StartAhead()
	CloseAhead()
	noChildren(t)
}

func noChildren(t *testing.T) {
	t.Helper()
	self := os.Getpid()
	if list := proc.Descendants(proc.All(), func(p proc.Process) bool { return p.Parent == self }); len(list) > 0 {
		t.Errorf("children left: %+v", list)
	}
}
