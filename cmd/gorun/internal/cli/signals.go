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
	"github.com/gorun/gorun/env/manager"
)

var (
	suspendSignals = []os.Signal{syscall.SIGTSTP, syscall.SIGTTOU} // suspend the job
	forwardSignals = []os.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGCONT}

	// signalChoices are the signals that users may want to end a job with. Other signals that can be caught are accepted too.
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
			return fmt.Errorf("no signal %s%s: want names separated by commas, such as SIGTERM,SIGUSR1", quote(item), didYouMean(name, signalChoices))
		case syscall.SIGKILL, syscall.SIGSTOP:
			return fmt.Errorf("no program can handle %s", name)
		case syscall.SIGCHLD:
			return fmt.Errorf("gorun gets %s whenever a worker ends", name)
		default:
			if !slices.Contains(o.stopSignals, os.Signal(sig)) {
				o.stopSignals = append(o.stopSignals, sig)
			}
		}
	}
	return nil
}

// forwards returns the signals that gorun forwards to the workers without ending the job.
func (o *options) forwards() []os.Signal { return o.butToStop(forwardSignals) }

// suspends returns the signals that suspend the job, except those that gorun's parent made it ignore.
func (o *options) suspends() []os.Signal {
	return slices.DeleteFunc(o.butToStop(suspendSignals), signal.Ignored)
}

// stepSignals returns the signals that end the job, if a resource manager may send them to every process of it.
func (o *options) stepSignals() (list []syscall.Signal) {
	if !manager.SignalsAll(o.host.lookup) {
		return nil
	}
	for _, s := range unignored(o.stopSignals) {
		list = append(list, s.(syscall.Signal))
	}
	return list
}

func (o *options) butToStop(list []os.Signal) []os.Signal {
	return slices.DeleteFunc(slices.Clone(list), func(s os.Signal) bool { return slices.Contains(o.stopSignals, s) })
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

// notify returns a channel that gets the signals in list.
func notify(list []os.Signal) chan os.Signal {
	c := make(chan os.Signal, 16)
	if list = unignored(list); len(list) > 0 {
		signal.Notify(c, list...)
	}
	return c
}

// unignored removes SIGHUP from list if the process ignores it, because nohup makes it ignored. The other
// signals stay, as in torchrun, although a shell makes its background jobs ignore some of them.
func unignored(list []os.Signal) []os.Signal {
	return slices.DeleteFunc(slices.Clone(list), func(s os.Signal) bool { return s == syscall.SIGHUP && signal.Ignored(s) })
}
