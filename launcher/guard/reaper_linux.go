package guard

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/gorun/gorun/launcher/proc"
)

// ReapAsInit reaps the processes that the kernel gives this one because it is process 1, as in a container without an
// init: a daemon that the entrypoint started before it became gorun, say. Without it they stay as zombies. It returns
// at once, and goes on until stop is called; where this process is not the first it does nothing.
//
// It leaves guards alone, and takes every other child that has ended. So it must not run
// while somebody else in this process waits for a child (Program.Build, os/exec).
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

// reapStrangers reaps the children of this process that have ended and are no guards. While it looks no guard is
// started: one that ends at once is on the list before it can be seen here. What a killed guard leaves is its gang's
// to reap as well: the one that comes second finds nothing to do.
func reapStrangers() {
	guards.Lock()
	defer guards.Unlock()
	self := os.Getpid()
	for _, p := range proc.All() {
		if p.Parent == self && p.Zombie && !isGuard(p.Pid) {
			proc.Reap(p.Pid)
		}
	}
}
