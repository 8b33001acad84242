package job

import (
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/gorun/gorun/agent"
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
