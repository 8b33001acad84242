//go:build unix

package comm

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// A quitWatch prints the flights on SIGQUIT, before Go prints the stacks of all goroutines and exits.
type quitWatch struct {
	mu      sync.Mutex
	worlds  int
	signals chan os.Signal
}

var onQuit quitWatch

// enter makes q watch for the signal until every caller of enter has called leave.
func (q *quitWatch) enter() (leave func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.worlds++; q.worlds == 1 {
		q.signals = make(chan os.Signal, 1)
		signal.Notify(q.signals, syscall.SIGQUIT)
		go serveQuit(q.signals)
	}
	return sync.OnceFunc(q.leave)
}

func (q *quitWatch) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.worlds--; q.worlds == 0 {
		signal.Stop(q.signals)
		close(q.signals)
	}
}

// serveQuit prints the flights when the signal comes. Then it sends the signal again, which has its usual effect.
func serveQuit(signals chan os.Signal) {
	for range signals {
		_ = WriteFlight(os.Stderr)
		signal.Stop(signals)
		_ = syscall.Kill(os.Getpid(), syscall.SIGQUIT)
	}
}
