package launcher

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/env/testing/testkit"
)

// sharing is a worker in Python that makes shared memory, for whose end the resource_tracker of its process waits, and starts a data loader,
// which keeps the tracker waiting. With "deaf", it does not end when it is asked.
const sharing = `
import multiprocessing, os, signal, sys, time
from multiprocessing import resource_tracker, shared_memory
memory = shared_memory.SharedMemory(create=True, size=4096, name=sys.argv[1])
if sys.argv[2] != "alone":
    multiprocessing.Process(target=time.sleep, args=(1000,), daemon=True).start()
signal.signal(signal.SIGTERM, signal.SIG_IGN)
def tracker_ignores():
    status = open("/proc/%d/status" % resource_tracker._resource_tracker._pid).read()
    return int(status.split("SigIgn:")[1].split()[0], 16) >> signal.SIGTERM - 1 & 1
while not tracker_ignores(): # it has only begun
    time.sleep(0.001)
print("ready", flush=True)
sys.stdin.read() # /dev/null
if sys.argv[2] != "deaf":
    os._exit(3)
time.sleep(1000)
`

// TestSharedMemoryIsRemoved: what outlives a worker to clear up after it does so, however the worker ends; data loaders do not keep it from
// that. Nobody is told of what ends by itself.
func TestSharedMemoryIsRemoved(t *testing.T) {
	python := "/usr/bin/python3"
	if _, err := os.Stat(python); err != nil {
		testkit.Cannot(t, "NOT TESTED: %v", err)
	}
	const killed, either = "processes that outlived their workers were killed: 1 of rank 0", "either"
	for _, c := range []struct {
		name, how string
		end       func(*Gang)
		warning   string
	}{
		{"exit", "alone", func(*Gang) {}, ""},
		{"exit beside a loader", "loader", func(*Gang) {}, killed},
		{"crash", "deaf", func(g *Gang) { _ = syscall.Kill(g.Pids()[0], syscall.SIGKILL) }, killed},
		{"hang", "deaf", func(g *Gang) { g.Fail(0, "it hangs", 0); g.Kill() }, either},
		{"stop", "deaf", func(g *Gang) { g.Stop(syscall.SIGTERM) }, ""},
		{"kill", "deaf", func(g *Gang) { g.Kill() }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var warned warnings
			name := strings.ReplaceAll(filepath.Base(t.TempDir())+t.Name(), "/", "-")
			s, con := spec(t, 1)
			s.Argv, s.Grace, s.Warn = []string{python, "-c", sharing, name, c.how}, 100*time.Millisecond, warned.add
			g := start(t, s)
			con.wait(t, "ready", 1)
			c.end(g)
			exits(t, g)
			if c.warning != either && warned.String() != c.warning {
				t.Errorf("warned %q, want %q", warned.String(), c.warning)
			}
			if file := "/dev/shm/" + name; os.Remove(file) == nil {
				t.Errorf("%s is left:\n%s", file, con)
			}
		})
	}
}
