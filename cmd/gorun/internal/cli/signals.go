package cli

import (
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/agent"
)

var (
	stopSignals    = []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT}
	suspendSignals = []os.Signal{syscall.SIGTSTP, syscall.SIGTTOU} // suspend the job
	forwardSignals = []os.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGCONT}

	// signalChoices are those that somebody may want to end a job with; any other that can be caught will do as well.
	signalChoices = []string{"SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGXCPU"}
)

// setSignals reads SIGTERM,SIGINT; the SIG may be left out.
func setSignals(o *options, s string) error {
	o.stopSignals = nil
	for item := range strings.SplitSeq(s, ",") {
		name := strings.ToUpper(strings.TrimSpace(item))
		if !strings.HasPrefix(name, "SIG") {
			name = "SIG" + name
		}
		sig := unix.SignalNum(name)
		switch sig {
		case 0:
			return fmt.Errorf("no signal %s%s: want names with commas between, such as SIGTERM,SIGUSR1", quote(item), didYouMean(name, signalChoices))
		case syscall.SIGKILL, syscall.SIGSTOP:
			return fmt.Errorf("%s cannot be handled by any program", name)
		case syscall.SIGCHLD:
			return fmt.Errorf("%s comes whenever a worker ends", name)
		default:
			if !slices.Contains(o.stopSignals, os.Signal(sig)) {
				o.stopSignals = append(o.stopSignals, sig)
			}
		}
	}
	return nil
}

// forwards are the signals that go to the workers without ending the job.
func (o *options) forwards() []os.Signal { return o.butToStop(forwardSignals) }

// suspends are the signals that suspend the job. Who starts gorun may have seen to it that nothing does.
func (o *options) suspends() []os.Signal {
	return slices.DeleteFunc(o.butToStop(suspendSignals), signal.Ignored)
}

func (o *options) butToStop(list []os.Signal) []os.Signal {
	return slices.DeleteFunc(slices.Clone(list), func(s os.Signal) bool { return slices.Contains(o.stopSignals, s) })
}

// interruptible does something in a file system, which may not answer, unless an interrupt comes first: then it is left
// behind.
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

// suspend suspends this process until somebody continues it, and returns how long that took.
func suspend() time.Duration {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	begun := time.Now()
	_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) // one may do that to oneself
	<-continued
	return time.Since(begun)
}

// notify delivers the signals on a list.
func notify(list []os.Signal) chan os.Signal {
	c := make(chan os.Signal, 16)
	if list = unignored(list); len(list) > 0 {
		signal.Notify(c, list...)
	}
	return c
}

// unignored leaves SIGHUP out if it is ignored: that is how nohup asks for it. The others count although a shell
// makes its background jobs ignore some of them, as torchrun does.
func unignored(list []os.Signal) []os.Signal {
	return slices.DeleteFunc(slices.Clone(list), func(s os.Signal) bool { return s == syscall.SIGHUP && signal.Ignored(s) })
}
