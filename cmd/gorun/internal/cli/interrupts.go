package cli

import (
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/gorun/gorun/env/manager"
)

// How long after a signal that ends the job another one is the same decision. timeout(1) signals gorun, and then the process group of both;
// systemd sends SIGHUP after SIGTERM; others pass on, as SIGTERM or as it is, what the terminal has sent already. No person decides twice in
// half a second. Slurm's two SIGTERM come 40 ms apart, but a busy cluster may delay one.
const (
	repeatWindow     = 500 * time.Millisecond
	termRepeatWindow = time.Second
)

// repeats finds the signals that say nothing new. It is pure.
type repeats struct {
	last time.Time // of those that say something; zero: none has come
}

// add reports whether a signal that comes now repeats one before.
func (r *repeats) add(sig os.Signal, now time.Time) bool {
	window := repeatWindow
	if sig == syscall.SIGTERM {
		window = termRepeatWindow
	}
	// After another signal, SIGPIPE is no decision: ^C ends the reader of the output too.
	if !r.last.IsZero() && (sig == syscall.SIGPIPE || now.Sub(r.last) < window) {
		return true
	}
	r.last = now
	return false
}

// withoutRepeats passes on what comes from caught, and drops repeats. It ends when caught is closed.
func withoutRepeats(caught <-chan os.Signal, logger *slog.Logger) <-chan os.Signal {
	passed := make(chan os.Signal, 16)
	go func() {
		defer close(passed)
		var before repeats
		for sig := range caught {
			if before.add(sig, time.Now()) {
				logger.Debug("a signal repeats the one before: they count as one", "signal", sig)
				continue
			}
			passed <- sig
		}
	}()
	return passed
}

// interrupts passes on the signals that end the job, once each. Before the first one, it finds out how long the job has left.
type interrupts struct {
	caught chan os.Signal // what this process gets
	passed chan os.Signal

	mu    sync.Mutex
	limit manager.KillLimit // since the first signal
}

// catchInterrupts catches signals as long as this process lives.
func (o *options) catchInterrupts(logger *slog.Logger) *interrupts {
	i := &interrupts{caught: notify(o.stopSignals), passed: make(chan os.Signal, 16)}
	go i.pass(logger, func() manager.KillLimit {
		limit, _ := manager.FindKillLimit(o.host.lookup, true) // the variables have been checked
		return limit
	})
	return i
}

// pass passes them on until caught is closed, which a process does not do. Meanwhile limit may take seconds, in which repeats come.
func (i *interrupts) pass(logger *slog.Logger, limit func() manager.KillLimit) {
	first := true
	for sig := range withoutRepeats(i.caught, logger) {
		if first {
			l := limit()
			i.mu.Lock()
			i.limit = l
			i.mu.Unlock()
		}
		first = false
		i.passed <- sig
	}
}

// grace returns how long workers may take to end after an interrupt, and a note about it, which may be empty.
func (i *interrupts) grace(o *options) (time.Duration, string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.limit.Grace(o.grace, o.given["shutdown-timeout"])
}
