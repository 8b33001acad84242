//go:build unix

package worker

import (
	"os"
	"os/signal"
	"syscall"
)

// watchQuit prints the flights when SIGQUIT comes, until end is called. Then it sends the signal again, which has its
// usual effect: Go prints the stacks of all goroutines and exits.
func (p *Process) watchQuit() (end func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGQUIT)
	go func() {
		for range signals {
			_ = p.WriteFlights(os.Stderr)
			signal.Stop(signals)
			_ = syscall.Kill(os.Getpid(), syscall.SIGQUIT)
		}
	}()
	return func() {
		signal.Stop(signals)
		close(signals)
	}
}
