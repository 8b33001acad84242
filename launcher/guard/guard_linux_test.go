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
	self := os.Getpid()
	if list := proc.Descendants(proc.All(), func(p proc.Process) bool { return p.Parent == self }); len(list) > 0 {
		t.Errorf("children left: %+v", list)
	}
}
