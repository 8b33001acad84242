package cli

import (
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"
)

// repeatWindow is how long after a SIGTERM another one is the same. Slurm sends two within 40 ms when the time of a job is up, and no
// person sends two in a second: that would be two commands. SIGINT is never repeated so: a second Ctrl-C kills, however soon it comes.
const repeatWindow = time.Second

// repeats finds the signals that say nothing new. It is pure.
type repeats struct {
	term time.Time // the first SIGTERM of those that are one; zero: none has come
}

// add reports whether a signal that comes now repeats one before.
func (r *repeats) add(sig os.Signal, now time.Time) bool {
	if sig != syscall.SIGTERM {
		return false
	}
	if !r.term.IsZero() && now.Sub(r.term) < repeatWindow {
		return true
	}
	r.term = now
	return false
}

// interrupts passes on the signals that end the job, once each. Before the first one, it finds out how long the job has left.
type interrupts struct {
	caught chan os.Signal // what this process gets
	passed chan os.Signal

	mu    sync.Mutex
	limit killLimit // since the first signal
}

// catchInterrupts catches signals as long as this process lives.
func (o *options) catchInterrupts(logger *slog.Logger) *interrupts {
	i := &interrupts{caught: notify(o.stopSignals), passed: make(chan os.Signal, 16)}
	go i.pass(logger, func() killLimit { return killLimitOf(o.host.lookup, showConfig) })
	return i
}

func (i *interrupts) pass(logger *slog.Logger, limit func() killLimit) {
	var before repeats
	first := true
	for sig := range i.caught { // until the process ends
		if before.add(sig, time.Now()) {
			logger.Debug("SIGTERM again within a second: it counts as one")
			continue
		}
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
	return i.limit.grace(o.grace, o.given["shutdown-timeout"])
}
