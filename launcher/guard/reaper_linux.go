package guard

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/gorun/gorun/launcher/proc"
)

// ReapAsInit reaps the orphans that this process adopts if it is process 1, as in a container without an init: for
// example, a daemon that the entrypoint started before it became gorun. Otherwise they would stay as zombies. It
// returns at once, and continues until stop is called. If this process is not process 1, it does nothing.
//
// It leaves guards alone, and reaps every other child that has ended. So it must not run while other code in
// this process waits for a child (Program.Build, os/exec).
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
	for _, p := range proc.All() {
		if p.Parent == self && p.Zombie && !isGuard(p.Pid) {
			proc.Reap(p.Pid)
		}
	}
}
