package hosts

import (
	"errors"
	"os/exec"
	"testing"
	"time"

	"github.com/gorun/gorun/env/testing/testkit"
)

// TestIsolateAHostThatHasEnded: it has no link any more, and is isolated when it is started again.
func TestIsolateAHostThatHasEnded(t *testing.T) {
	n, err := New()
	if _, ok := errors.AsType[*UnavailableError](err); ok {
		testkit.Cannot(t, "%v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	start := func(host int) *exec.Cmd {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sleep", "1000")
		if err := n.Start(cmd, host); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	start(1)
	first := start(0)
	_, _ = first.Process.Kill(), first.Wait()
	for gone := false; !gone; time.Sleep(time.Millisecond) { // the kernel takes a moment
		gone = n.do("ip link show "+linkOf(0)+" >/dev/null") != nil
	}
	if err := n.Isolate(0, 1); err != nil {
		t.Fatal(err)
	}
	start(0)
	if err := n.do("bridge -d link show dev " + linkOf(0) + " | grep -q 'isolated on' || echo not isolated"); err != nil {
		t.Error(err)
	}
	if err := n.Rejoin(0, 1); err != nil {
		t.Error(err)
	}
}
