package job

import (
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/env/manager"
)

var (
	suspendSignals = []os.Signal{syscall.SIGTSTP, syscall.SIGTTOU} // suspend the job
	forwardSignals = []os.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGCONT}
)

// Forwards returns the signals that gorun forwards to the workers without ending the job.
func Forwards(stop []os.Signal) []os.Signal { return without(forwardSignals, stop) }

// suspends returns the signals that suspend the job, except those that gorun's parent made it ignore.
func suspends(stop []os.Signal) []os.Signal {
	return slices.DeleteFunc(without(suspendSignals, stop), signal.Ignored)
}

func without(list, stop []os.Signal) []os.Signal {
	return slices.DeleteFunc(slices.Clone(list), func(s os.Signal) bool { return slices.Contains(stop, s) })
}

// interruptible calls do, which uses a file system that may not answer. If an interrupt comes first, it returns without
// waiting for do.
func interruptible[T any](interrupts <-chan os.Signal, do func() (T, error)) (result T, err error) {
	done := make(chan struct{})
	var answer T
	var failed error
	go func() {
		defer close(done)
		answer, failed = do()
	}()
	select {
	case <-done:
		return answer, failed
	case sig := <-interrupts:
		return result, &agent.InterruptError{Signal: sig.(syscall.Signal)}
	}
}

// suspend suspends this process until somebody continues it, and returns how long it was suspended.
func suspend() time.Duration {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	begun := time.Now()
	_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) // one may do that to oneself
	<-continued
	return time.Since(begun)
}

// Notify returns a channel that gets the signals in list.
func Notify(list []os.Signal) chan os.Signal {
	c := make(chan os.Signal, 16)
	if list = Unignored(list); len(list) > 0 {
		signal.Notify(c, list...)
	}
	return c
}

// Unignored removes SIGHUP from list if the process ignores it, because nohup makes it ignored. The other
// signals stay, as in torchrun, although a shell makes its background jobs ignore some of them.
func Unignored(list []os.Signal) []os.Signal {
	return slices.DeleteFunc(slices.Clone(list), func(s os.Signal) bool { return s == syscall.SIGHUP && signal.Ignored(s) })
}

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

// Unrepeated passes on what comes from caught, and drops repeats. It ends when caught is closed.
func Unrepeated(caught <-chan os.Signal, logger *slog.Logger) <-chan os.Signal {
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

// Interrupts passes on the signals that end the job, once each. Before the first one, it finds out how long the job has left.
type Interrupts struct {
	Caught chan os.Signal // what this process gets
	Passed chan os.Signal

	mu    sync.Mutex
	limit manager.KillLimit // since the first signal
}

// CatchInterrupts catches signals as long as this process lives. limit may take seconds.
func CatchInterrupts(list []os.Signal, limit func() manager.KillLimit, logger *slog.Logger) *Interrupts {
	i := &Interrupts{Caught: Notify(list), Passed: make(chan os.Signal, 16)}
	go i.pass(logger, limit)
	return i
}

// pass passes them on until Caught is closed, which a process does not do. While limit is found out, repeats come.
func (i *Interrupts) pass(logger *slog.Logger, limit func() manager.KillLimit) {
	first := true
	for sig := range Unrepeated(i.Caught, logger) {
		if first {
			l := limit()
			i.mu.Lock()
			i.limit = l
			i.mu.Unlock()
		}
		first = false
		i.Passed <- sig
	}
}

// grace returns how long workers may take to end after an interrupt, and a note about it, which may be empty. given is how the user gave the
// time that is asked for.
func (i *Interrupts) grace(asked time.Duration, given string) (time.Duration, string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.limit.Grace(asked, given)
}
