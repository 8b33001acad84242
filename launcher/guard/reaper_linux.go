package guard

import (
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/gorun/gorun/env/proc"
)

// ReapAsInit reaps the orphans that this process adopts if it is process 1, as in a container without an init: for
// example, a daemon that the entrypoint started before it became gorun. Otherwise they would stay as zombies. It
// returns at once, and continues until stop is called. If this process is not process 1, it does nothing.
//
// It leaves alone guards and what os/exec has started. Before Linux 5.4, which has no pidfds, it must not run beside os/exec.
func ReapAsInit() (stop func()) {
	if os.Getpid() != 1 {
		return func() {}
	}
	ended, quit, done := make(chan os.Signal, 1), make(chan struct{}), make(chan struct{})
	signal.Notify(ended, syscall.SIGCHLD) // one may stand for many
	go func() {
		defer close(done)
		for {
			reapStrangers()
			select {
			case <-ended:
			case <-quit:
				return
			}
		}
	}()
	return func() {
		signal.Stop(ended)
		close(quit)
		<-done
	}
}

// reapStrangers reaps the children of this process that have ended and are not guards. No guard can start while it
// looks, so even a guard that ends at once is known before it can be seen here. The orphans of a killed guard may be
// reaped here or by their gang: whichever comes second finds nothing to do.
func reapStrangers() {
	guards.Lock()
	defer guards.Unlock()
	self := os.Getpid()
	var ended []int
	for _, p := range proc.All() {
		if p.Parent == self && p.Zombie && !isGuard(p.Pid) {
			ended = append(ended, p.Pid)
		}
	}
	if ended == nil {
		return
	}
	awaited := withPidfd()
	for _, pid := range ended {
		if !awaited[pid] {
			proc.Reap(pid)
		}
	}
}

// withPidfd returns the processes for which this process has a pidfd. Package os opens one as it starts a process, and closes it after it
// has waited for it.
func withPidfd() map[int]bool {
	pids := make(map[int]bool)
	const dir = "/proc/self/fdinfo/"
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		info, _ := os.ReadFile(dir + e.Name()) // it may have been closed
		for line := range strings.Lines(string(info)) {
			if text, ok := strings.CutPrefix(line, "Pid:"); ok {
				if pid, err := strconv.Atoi(strings.TrimSpace(text)); err == nil && pid > 0 {
					pids[pid] = true
				}
			}
		}
	}
	return pids
}
