package main

import (
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/env/proc"
)

// TestFrozenJob: nobody hangs because gorun has been stopped, alone or with all its processes, for longer than --hang-timeout.
func TestFrozenJob(t *testing.T) {
	t.Parallel()
	for name, alone := range map[string]bool{"alone": true, "all": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			release := newRelease(t)
			const touch = `touch "$GORUN_PROGRESS_FILE"; `
			n := startNode(t, "--nproc-per-node=2", "--hang-timeout=3", "sh", "-c",
				touch+`echo up; until test -e `+string(release)+`; do `+touch+`sleep 0.02; done`)
			n.expect(" up$")
			n.expect(" up$")
			all := proc.Descendants(proc.All(), func(p proc.Process) bool { return p.Pid == n.cmd.Process.Pid })
			if alone {
				all = all[:1]
			}
			signalAll(all, syscall.SIGSTOP)
			awaitSuspended(t, n.cmd.Process.Pid, true)
			time.Sleep(5 * time.Second) // it is the passing of time that must do nothing
			signalAll(all, syscall.SIGCONT)
			time.Sleep(4 * time.Second)
			release.create(t)
			n.end(0)
		})
	}
}

func signalAll(list []proc.Process, sig syscall.Signal) {
	for _, p := range list {
		_ = p.Signal(sig) // some end meanwhile
	}
}
